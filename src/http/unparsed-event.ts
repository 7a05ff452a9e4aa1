/** Emitted by the server with the ServiceError that was sent for what was no request, or only a part of one. */
export const UNPARSED_EVENT = 'unparsed';
