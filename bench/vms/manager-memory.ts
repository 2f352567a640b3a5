/** The memory of a plane's server and node agents after garbage collection, without guests. */
import { pause } from '../pause.ts';
import { memoryBytes, proportionalBytes } from '../proc-files.ts';
import type { VmBench } from './vm-bench.ts';

/** The Node option that loads collect-garbage.ts, which collects garbage on SIGUSR2. */
export const COLLECT_GARBAGE = `--import=${new URL('./collect-garbage.ts', import.meta.url).href}`;
/** Time for work and garbage collection of idle processes. */
const SETTLE_MS = 3000;
const COLLECT_MS = 2000;

export interface ManagerMemory {
  readonly serverBytes: number;
  readonly nodeBytes: number;
  /** The PSS of all processes, which counts shared pages once. */
  readonly proportionalBytes: number;
}

/** Returns the memory (VmRSS, except for the PSS) of a plane that was started with COLLECT_GARBAGE. */
export async function managerMemory(bench: VmBench): Promise<ManagerMemory> {
  const { server, nodes } = await bench.managers();
  const agents = [...nodes.values()];
  await pause(SETTLE_MS);
  for (const pid of [server, ...agents]) process.kill(pid, 'SIGUSR2');
  await pause(COLLECT_MS);
  const sum = (pids: readonly number[], of: (pid: number) => number) => pids.reduce((all, pid) => all + of(pid), 0);
  const resident = (pid: number) => memoryBytes(pid, 'VmRSS');
  return {
    serverBytes: resident(server),
    nodeBytes: sum(agents, resident),
    proportionalBytes: sum([server, ...agents], proportionalBytes),
  };
}

export function residentBytes({ serverBytes, nodeBytes }: ManagerMemory): number {
  return serverBytes + nodeBytes;
}

/** Describes the growth of each part, in total and per VM. */
export function memoryNote(before: ManagerMemory, after: ManagerMemory, vms: number): string {
  const growth = (of: (memory: ManagerMemory) => number) => of(after) - of(before);
  const describePart = (of: (memory: ManagerMemory) => number) =>
    `${mb(of(before))} to ${mb(of(after))} (${kb(growth(of) / vms)} per VM)`;
  return [
    `${kb(growth(residentBytes) / vms)} per VM`,
    `server ${describePart(({ serverBytes }) => serverBytes)}`,
    `nodes ${describePart(({ nodeBytes }) => nodeBytes)}`,
    `PSS ${describePart((memory) => memory.proportionalBytes)}`,
  ].join('; ');
}

const mb = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
const kb = (bytes: number) => `${Math.round(bytes / 1e3)} KB`;
