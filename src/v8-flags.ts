import { setFlagsFromString } from 'node:v8';

// Imported before everything else, because V8 makes final decisions while it loads the modules.

/**
 * By default, the heap grows to several times the size of the objects in use before a full garbage collection. A
 * third more is enough: under full load the process takes 220 MB instead of 340, at the same speed.
 */
setFlagsFromString('--heap-growing-percent=30');

/**
 * V8 allocates objects that it expects to live long where only a full garbage collection removes them. In about one
 * start of ten it expected that of the objects of a request: a quarter of them was copied twice, and a request cost
 * 66 µs instead of 38 until the process ended.
 */
setFlagsFromString('--no-allocation-site-pretenuring');
