import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import { AccessTokensService, type Caller } from './access-tokens.service.js';

@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  constructor(private readonly accessTokens: AccessTokensService) {
    super();
  }

  /** Called by Passport with the token of a request. */
  async validate(token: string): Promise<Caller | false> {
    return (await this.accessTokens.verify(token)) ?? false;
  }
}
