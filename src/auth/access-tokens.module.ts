import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenEntity } from './access-token.entity.js';
import { AccessTokensService } from './access-tokens.service.js';

/** What the guard and the command line share. */
@Module({
  imports: [TypeOrmModule.forFeature([AccessTokenEntity])],
  providers: [AccessTokensService],
  exports: [AccessTokensService],
})
export class AccessTokensModule {}
