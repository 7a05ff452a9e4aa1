import { Reflector } from '@nestjs/core';
import { describe, expect, it } from '@jest/globals';
import { ForMetricsToken } from './metrics-token.decorator.js';

describe('@ForMetricsToken()', () => {
  it('opens its own route to the metrics token, and no other', () => {
    class Controller {
      @ForMetricsToken()
      metrics(this: void) {}

      plants(this: void) {}
    }
    const { metrics, plants } = Controller.prototype;
    const reflector = new Reflector();
    expect(reflector.get(ForMetricsToken, metrics)).toBe(true);
    expect(reflector.get(ForMetricsToken, plants)).toBeUndefined();
  });
});
