// The methods that pages of allowed origins may use, and that metrics name.

/** The methods of all routes. */
export const METHODS = ['GET', 'HEAD', 'POST'];
