import { setFlagsFromString } from 'node:v8';

// Imported before everything else: what V8 decides while the modules are loaded, it decides for good.

/**
 * V8 lets garbage grow to several times of what is in use before it looks through all of it. A third more is
 * enough: under full load the process takes 220 MB instead of 340 then, at the same speed.
 */
setFlagsFromString('--heap-growing-percent=30');

/**
 * V8 puts objects that seem to live long where only a full garbage collection finds them. In about one start of
 * ten it took those of requests for such: each then kept others alive, of what a request leaves a quarter was
 * copied twice, and a request cost 66 µs instead of 38, until the process ended.
 */
setFlagsFromString('--no-allocation-site-pretenuring');
