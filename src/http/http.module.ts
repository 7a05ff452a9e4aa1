// For the controllers of all modules: they share one limit of requests, one of bodies, one observer and one lifecycle.

import { Global, Module } from '@nestjs/common';
import { PendingRequests } from './admission.guard.js';
import { LifecycleService } from './lifecycle.service.js';
import { PendingBodies } from './pending-bodies.js';
import { RequestObserver } from './request-observer.js';

@Global()
@Module({
  providers: [LifecycleService, PendingBodies, PendingRequests, RequestObserver],
  exports: [LifecycleService, PendingRequests],
})
export class HttpModule {}
