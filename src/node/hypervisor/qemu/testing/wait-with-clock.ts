/** Advances a fake clock for tests with real processes and sockets, which need some real time at each step. */
import type { FakeClock } from '#lib/testing/fake-clock.ts';

const STEP_MS = 10;
/** Limits the loop: if it continued after the timeout of its test, the process would never end. */
const LIMIT_MS = 15_000;

export function waitWithClock(clock: FakeClock): (condition: () => boolean) => Promise<void> {
  return async (isSo) => {
    const end = performance.now() + LIMIT_MS;
    while (!isSo()) {
      if (performance.now() > end) throw new Error('the expected condition did not become true in time');
      await clock.advance(STEP_MS);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
}
