// One limit of requests in flight, one observer and one lifecycle for all modules.

import { Global, Module } from '@nestjs/common';
import { PendingRequests } from './admission.guard.js';
import { LifecycleService } from './lifecycle.service.js';
import { RequestObserver } from './request-observer.js';

@Global()
@Module({
  providers: [LifecycleService, PendingRequests, RequestObserver],
  exports: [LifecycleService, PendingRequests, RequestObserver],
})
export class HttpModule {}
