import { Module } from '@nestjs/common';
import { AccessTokensModule } from './access-tokens.module.js';
import { BearerStrategy } from './bearer.strategy.js';
import { TokenVerifierService } from './token-verifier.service.js';

@Module({
  imports: [AccessTokensModule],
  providers: [TokenVerifierService, BearerStrategy],
  exports: [TokenVerifierService],
})
export class AuthModule {}
