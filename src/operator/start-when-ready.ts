/** Starts a controller as soon as its requirements are met. */
import type { RunningController } from '#runtime/controller.ts';

/** Starts the controller with the result of `ready`; never if that is undefined, as after an abort. Idle until then. */
export function startWhenReady<T>(
  name: string,
  ready: Promise<T | undefined>,
  start: (required: T) => RunningController,
): RunningController {
  const started = ready.then((required) => (required === undefined ? undefined : start(required)));
  let running: RunningController | undefined;
  void started.then((controller) => (running = controller));
  return {
    name,
    enqueue: (key) => running?.enqueue(key),
    idle: async () => await running?.idle(),
    findOverdue: async () => (await running?.findOverdue?.()) ?? [],
    get violations() {
      return running?.violations ?? [];
    },
    get kindsRead() {
      return running?.kindsRead;
    },
    stopped: started.then(async (controller) => await controller?.stopped),
  };
}
