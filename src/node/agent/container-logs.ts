/** What containers of this node said: the serial console of guests, their hypervisor, the output of our own program. */
import { COMPUTE_CONTAINER, CONSOLE_CONTAINER } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { ContainerLog } from '#node/endpoint/endpoint-agent.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { podRole } from '#node/pods/pod-role.ts';
import type { ProgramPods } from '#node/pods/program-pods.ts';

export interface LogParts {
  readonly pods: Informer<Pod>;
  readonly programs: ProgramPods;
  readonly hypervisor: Hypervisor;
}

/** Undefined: no such container here. */
export function containerLog(
  { pods, programs, hypervisor }: LogParts,
  { namespace, pod: name, container }: { namespace: string; pod: string; container: string },
): ContainerLog | undefined {
  const pod = pods.get(keyOf({ namespace, name }));
  if (!pod?.spec.containers.some((candidate) => candidate.name === container)) return undefined;
  const role = podRole(pod);
  if (role.is === 'launcher') {
    if (container !== CONSOLE_CONTAINER && container !== COMPUTE_CONTAINER) return undefined;
    // Labels are anybody's to write: a pod tells of a guest of its own namespace only.
    if (hypervisor.get(role.uid)?.name !== `${namespace}/${role.instance}`) return NOTHING_SAID;
    return container === CONSOLE_CONTAINER ? consoleLog(hypervisor, role.uid) : hypervisorLog(hypervisor, role.uid);
  }
  const run = programs.runOf(pod);
  if (run === undefined) return NOTHING_SAID;
  return { timed: false, read: async () => run.read(), follow: (signal) => run.follow(signal) };
}

const NOTHING_SAID: ContainerLog = {
  timed: false,
  read: async () => Buffer.alloc(0),
  async *follow() {
    yield Buffer.alloc(0);
  },
};

function consoleLog(hypervisor: Hypervisor, id: string): ContainerLog {
  const read = async () => (hypervisor.get(id) === undefined ? Buffer.alloc(0) : hypervisor.readConsoleLog(id));
  return {
    timed: false,
    read,
    async *follow(signal) {
      if (hasEnded(hypervisor, id)) {
        yield await read();
        return;
      }
      // Opened first, so that nothing is missed between the two; what is said meanwhile may come twice.
      const console = await hypervisor.openConsole(id);
      const end = () => void console.destroy();
      // One that is cut off while its reader is still busy with the beginning must not end the agent; the loop tells.
      console.on('error', () => undefined);
      signal.addEventListener('abort', end, { once: true });
      try {
        yield await read();
        if (!signal.aborted) for await (const chunk of console) yield chunk as Buffer;
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        signal.removeEventListener('abort', end);
        console.destroy();
      }
    },
  };
}

/** Followed, it tells what was said meanwhile when the guest has ended: a hypervisor says little before that. */
function hypervisorLog(hypervisor: Hypervisor, id: string): ContainerLog {
  const read = async () => (hypervisor.get(id) === undefined ? Buffer.alloc(0) : hypervisor.readLog(id));
  return {
    timed: false,
    read,
    async *follow(signal) {
      const before = await read();
      yield before;
      await ended(hypervisor, id, signal);
      if (signal.aborted) return;
      const after = await read();
      yield after.subarray(after.indexOf(before) === 0 ? before.length : 0);
    },
  };
}

function hasEnded(hypervisor: Hypervisor, id: string): boolean {
  const domain = hypervisor.get(id);
  return domain === undefined || domain.current.state === 'ended';
}

function ended(hypervisor: Hypervisor, id: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!signal.aborted && !hasEnded(hypervisor, id)) return;
      leave();
      signal.removeEventListener('abort', look);
      resolve();
    };
    const leave = hypervisor.onChange(look);
    signal.addEventListener('abort', look);
    look();
  });
}
