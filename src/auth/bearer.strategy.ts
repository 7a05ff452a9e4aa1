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

  async validate(token: string): Promise<Caller | false> {
    return (await this.tokenVerifier.verify(token)) ?? false;
  }
}
