/** A controller that cannot start yet: what it looks at is not there. */
import type { RunningController } from '#runtime/controller.ts';

/** Starts it when `ready` says true; never where it says false, as after an abort. Until then it has nothing to do. */
export function startLate(name: string, ready: Promise<boolean>, start: () => RunningController): RunningController {
  const started = ready.then((yes) => (yes ? start() : undefined));
  let running: RunningController | undefined;
  void started.then((controller) => (running = controller));
  return {
    name,
    enqueue: (key) => running?.enqueue(key),
    idle: async () => await running?.idle(),
    stopped: started.then(async (controller) => await controller?.stopped),
  };
}
