import { Global, Module } from '@nestjs/common';
import { LifecycleService } from './lifecycle.service.js';
import { RequestObserver } from './request-observer.js';

@Global()
@Module({ providers: [LifecycleService, RequestObserver], exports: [LifecycleService] })
export class HttpModule {}
