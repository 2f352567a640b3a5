/** Lets a fake clock run while processes and sockets are real, which need real time: a little of it with each step. */
import type { FakeClock } from '#client/testing/fake-clock.ts';

const STEP_MS = 10;
/** Ends by itself: a loop that went on after its test had timed out would keep the process busy for ever. */
const LIMIT_MS = 15_000;

export function untilWith(clock: FakeClock): (isSo: () => boolean) => Promise<void> {
  return async (isSo) => {
    const end = performance.now() + LIMIT_MS;
    while (!isSo()) {
      if (performance.now() > end) throw new Error('Waited in vain for what the test expects');
      await clock.advance(STEP_MS);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
}
