// For browsers and operators: pages of allowed origins may use these methods, and metrics name them.

/** The methods of all routes. */
export const METHODS = ['GET', 'HEAD', 'POST'];
