/** The methods of all routes. Pages of allowed origins may use them, and the metrics name them. */
export const METHODS = ['GET', 'HEAD', 'POST'];
