// For all clients of a busy service: a request takes less time, and one with many small chunks takes little memory.

import { IncomingMessage, ServerResponse, type ServerOptions } from 'node:http';
import type { Application } from 'express';
import { countBodyBytes } from './body-garbage.js';
import { SmallChunks } from './small-chunks.js';

/**
 * Classes whose instances already have the prototypes that Express gives to requests and responses. Otherwise Express changes
 * the prototype of every request and response, and V8 treats them as slow objects from then on.
 */
export function classesOf(
  app: Application,
): Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'> {
  // Express's types lack these properties.
  const prototypes = app as unknown as { request: object; response: object };
  class ExpressRequest extends IncomingMessage {
    private smallChunks: SmallChunks | undefined;

    /** Called by Node with each part of a body, also that of a refused request, and with null at its end. */
    override push(part: Buffer | null): boolean {
      if (part === null) {
        this.smallChunks?.flush();
        return super.push(null);
      }
      countBodyBytes(part.length);
      if (this.headers['transfer-encoding'] === undefined) return super.push(part);
      this.smallChunks ??= this.gatherSmallChunks();
      if (this.readableFlowing !== true && this.smallChunks.add(part)) {
        // Otherwise, Node would read the whole body into memory.
        return this.readableLength < this.readableHighWaterMark;
      }
      this.smallChunks.flush();
      return super.push(part);
    }

    private gatherSmallChunks(): SmallChunks {
      const chunks = new SmallChunks((gathered) => super.push(gathered));
      // Somebody reads the body now, whose last chunk may have arrived: it may be too large, and never end.
      this.on('resume', () => chunks.flush());
      return chunks;
    }
  }
  class ExpressResponse<Of extends IncomingMessage> extends ServerResponse<Of> {}
  Object.setPrototypeOf(ExpressRequest.prototype, prototypes.request);
  Object.setPrototypeOf(ExpressResponse.prototype, prototypes.response);
  prototypes.request = ExpressRequest.prototype;
  prototypes.response = ExpressResponse.prototype;
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse };
}
