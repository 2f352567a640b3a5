/** A controller that cannot start yet: what it looks at is not there. */
import type { RunningController } from '#runtime/controller.ts';

/** Starts it with what `ready` gives; never where that is nothing, as after an abort. Until then it has nothing to do. */
export function startLate<T>(
  name: string,
  ready: Promise<T | undefined>,
  start: (found: T) => RunningController,
): RunningController {
  const started = ready.then((found) => (found === undefined ? undefined : start(found)));
  let running: RunningController | undefined;
  void started.then((controller) => (running = controller));
  return {
    name,
    enqueue: (key) => running?.enqueue(key),
    idle: async () => await running?.idle(),
    overdue: async () => (await running?.overdue?.()) ?? [],
    get violations() {
      return running?.violations ?? [];
    },
    get kindsRead() {
      return running?.kindsRead;
    },
    stopped: started.then(async (controller) => await controller?.stopped),
  };
}
