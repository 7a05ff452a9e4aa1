import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import type { Caller } from './caller.js';
import { TokenVerifierService } from './token-verifier.service.js';

@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  constructor(private readonly tokenVerifier: TokenVerifierService) {
    super();
  }

  validate(token: string): Promise<Caller> {
    return this.tokenVerifier.verify(token);
  }
}
