/** What the managers of a plane hold in memory, garbage aside: the server and the agents of its nodes, without guests. */
import { pause } from '../pause.ts';
import { memoryBytes, proportionalBytes } from '../proc-files.ts';
import type { VmGround } from './vm-ground.ts';

/** For Node: settle.ts, which makes SIGUSR2 collect garbage. */
export const SETTLING = `--import=${new URL('./settle.ts', import.meta.url).href}`;
/** For what a process does and frees by itself, once it is left alone. */
const SETTLE_MS = 3000;
const COLLECT_MS = 2000;

export interface ManagerMemory {
  readonly serverBytes: number;
  readonly nodeBytes: number;
  /** Of all, with each shared page counted once. */
  readonly proportionalBytes: number;
}

/** Only of a plane that was started with SETTLING. VmRSS, but where it says otherwise. */
export async function managerMemory(ground: VmGround): Promise<ManagerMemory> {
  const { server, nodes } = await ground.managers();
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

/** Each part, and how much of it one VM costs. */
export function memoryNote(before: ManagerMemory, after: ManagerMemory, vms: number): string {
  const grown = (of: (memory: ManagerMemory) => number) => of(after) - of(before);
  const part = (of: (memory: ManagerMemory) => number) =>
    `${mb(of(before))} to ${mb(of(after))} (${kb(grown(of) / vms)} per VM)`;
  return [
    `${kb(grown(residentBytes) / vms)} per VM`,
    `server ${part(({ serverBytes }) => serverBytes)}`,
    `nodes ${part(({ nodeBytes }) => nodeBytes)}`,
    `PSS ${part((memory) => memory.proportionalBytes)}`,
  ].join('; ');
}

const mb = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
const kb = (bytes: number) => `${Math.round(bytes / 1e3)} KB`;
