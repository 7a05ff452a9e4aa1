/** For browsers and operators: the methods of all routes, which pages of allowed origins may use, and which metrics name. */
export const METHODS = ['GET', 'HEAD', 'POST'];
