// For all clients together: each limit counts the requests of all routes, and a stop ends all of them.

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
