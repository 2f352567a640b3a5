/** The logs of this node's containers: serial consoles of guests, logs of their hypervisor, and output of programs. */
import { COMPUTE_CONTAINER, CONSOLE_CONTAINER } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { ContainerLog } from '#node/endpoint/endpoint-agent.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { podRole } from '#node/pods/pod-role.ts';
import type { ProgramPods } from '#node/pods/program-pods.ts';

interface ContainerLogParts {
  readonly pods: Informer<Pod>;
  readonly programs: ProgramPods;
  readonly hypervisor: Hypervisor;
}

/** Returns undefined if this node has no such container. */
export function containerLog(
  { pods, programs, hypervisor }: ContainerLogParts,
  { namespace, pod: name, container }: { namespace: string; pod: string; container: string },
): ContainerLog | undefined {
  const pod = pods.get(keyOf({ namespace, name }));
  if (!pod?.spec.containers.some((candidate) => candidate.name === container)) return undefined;
  const role = podRole(pod);
  if (role.is === 'launcher') {
    if (container !== CONSOLE_CONTAINER && container !== COMPUTE_CONTAINER) return undefined;
    // Any user can set labels, so a pod may show only the log of a guest in its own namespace.
    if (hypervisor.get(role.uid)?.name !== `${namespace}/${role.instance}`) return EMPTY_LOG;
    return container === CONSOLE_CONTAINER ? consoleLog(hypervisor, role.uid) : hypervisorLog(hypervisor, role.uid);
  }
  const run = programs.runOf(pod);
  if (run === undefined) return EMPTY_LOG;
  return { timed: false, read: async () => run.read(), follow: (signal) => run.follow(signal) };
}

const EMPTY_LOG: ContainerLog = {
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
      // The console is opened before the log is read, so that no output is missed; some may appear twice.
      const console = await hypervisor.openConsole(id);
      const end = () => void console.destroy();
      // An unhandled error during the first `yield` would end the process; the loop below throws it again.
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

/** Returns the log of the hypervisor. A follower gets new lines only at the end of the guest; little is logged before. */
function hypervisorLog(hypervisor: Hypervisor, id: string): ContainerLog {
  const read = async () => (hypervisor.get(id) === undefined ? Buffer.alloc(0) : hypervisor.readLog(id));
  return {
    timed: false,
    read,
    async *follow(signal) {
      const before = await read();
      yield before;
      await waitForEnd(hypervisor, id, signal);
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

function waitForEnd(hypervisor: Hypervisor, id: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (!signal.aborted && !hasEnded(hypervisor, id)) return;
      unsubscribe();
      signal.removeEventListener('abort', check);
      resolve();
    };
    const unsubscribe = hypervisor.onChange(check);
    signal.addEventListener('abort', check);
    check();
  });
}
