import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenEntity } from './access-token.entity.js';
import { AccessTokensService } from './access-tokens.service.js';
import { BearerStrategy } from './bearer.strategy.js';

@Module({
  imports: [PassportModule, TypeOrmModule.forFeature([AccessTokenEntity])],
  providers: [AccessTokensService, BearerStrategy],
  exports: [AccessTokensService],
})
export class AuthModule {}
