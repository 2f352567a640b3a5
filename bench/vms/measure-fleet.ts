/**
 * Measures thousands of VMs with simulated guests (`--hypervisor fake`): everything except QEMU is real, and each VM
 * passes from the API through controllers, scheduler and agent to its status.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { listAll } from '#client/paged-list.ts';
import { JobProcess } from '../jobs.ts';
import { pause } from '../pause.ts';
import { cpuMs } from '../proc-files.ts';
import type { Row } from '../report.ts';
import type { Fleet, FleetJob } from './fleet-load.ts';
import { managerMemory, memoryNote, residentBytes, COLLECT_GARBAGE } from './manager-memory.ts';
import { NAMESPACE } from './manifests.ts';
import type { VmBench } from './vm-bench.ts';

const CLIENTS = 16;
const PLANE = { nodes: 2, hypervisor: 'fake', nodeOptions: COLLECT_GARBAGE } as const;
const POLL_MS = 500;
/** Leases and timers use less than this share of a core. */
const IDLE_CORES = 0.1;
const IDLE_TIMEOUT_MS = 300_000;

export async function measureFleet(bench: VmBench, count: number): Promise<Row[]> {
  // The first start creates the store, the certificates and the kinds.
  await bench.startPlane(PLANE);
  await bench.stopPlane();
  const empty = await bench.startPlane(PLANE);
  const before = await managerMemory(bench);
  const cpuBefore = await managersCpuMs(bench);
  const load = new JobProcess<FleetJob>('./vms/fleet-load.ts');
  let fleet: Fleet;
  try {
    fleet = await load.run<Fleet>({ target: await bench.target(), count, clients: CLIENTS });
  } finally {
    await load.stop();
  }
  const cpu = await managersCpuMs(bench);
  const serverCores = (cpu.server - cpuBefore.server) / 1000 / fleet.seconds;
  const nodeCores = (cpu.nodes - cpuBefore.nodes) / 1000 / fleet.seconds;
  await waitUntilIdle(bench);
  const after = await managerMemory(bench);
  const revisionBefore = await revisionWhenAllRun(bench, count);
  await bench.stopPlane();

  const from = performance.now();
  const again = await bench.startPlane(PLANE);
  await revisionWhenAllRun(bench, count);
  const seconds = (performance.now() - from) / 1000;
  const idleSeconds = seconds + (await waitUntilIdle(bench));
  const writes = (await revisionWhenAllRun(bench, count)) - revisionBefore;
  const restarted = await managerMemory(bench);
  const many = count.toLocaleString('en');
  return [
    {
      what: 'simulated VMs until Running',
      unit: 'perSecond',
      engine: count / fleet.seconds,
      p50Ms: fleet.p50Ms,
      p99Ms: fleet.p99Ms,
      serverCores,
      clientCores: fleet.clientCores,
      note: `${many} in ${fleet.seconds.toFixed(1)} s from ${CLIENTS} clients, whose last create was answered after ${fleet.createSeconds.toFixed(1)} s; the nodes used ${nodeCores.toFixed(2)} cores`,
    },
    {
      what: `managers' RSS, ${many} simulated`,
      unit: 'bytes',
      engine: residentBytes(after),
      floor: residentBytes(before),
      note: memoryNote(before, after, count),
    },
    {
      what: "managers' RSS, restarted with them",
      unit: 'bytes',
      engine: residentBytes(restarted),
      floor: residentBytes(before),
      note: memoryNote(before, restarted, count),
    },
    {
      what: 'restart until all report again',
      unit: 'seconds',
      engine: seconds,
      floor: empty.startMs / 1000,
      note: `ready after ${(again.startMs / 1000).toFixed(2)} s; idle after ${idleSeconds.toFixed(1)} s and ${writes} writes; floor: without VMs`,
    },
  ];
}

/** Returns the revision if all VMs are Running, and throws otherwise: after a restart all must still be. */
async function revisionWhenAllRun(bench: VmBench, count: number): Promise<number> {
  const { items, resourceVersion } = await listAll(await bench.client(), VIRTUAL_MACHINES, { namespace: NAMESPACE });
  const running = items.filter(({ status }) => status?.printableStatus === 'Running').length;
  if (running !== count) throw new Error(`${running} of ${count} VMs are Running; expected all`);
  return Number(resourceVersion);
}

/** Resolves when server and agents are idle, with the seconds until then. */
export async function waitUntilIdle(bench: VmBench): Promise<number> {
  const from = performance.now();
  for (let busyUntil = from; ;) {
    const before = await managersCpuMs(bench);
    await pause(POLL_MS);
    const now = await managersCpuMs(bench);
    const cores = (now.server + now.nodes - before.server - before.nodes) / POLL_MS;
    if (cores > IDLE_CORES) busyUntil = performance.now();
    else if (performance.now() - busyUntil >= 2 * POLL_MS) return (busyUntil - from) / 1000;
    if (performance.now() - from > IDLE_TIMEOUT_MS) throw new Error('Cannot measure: the plane does not become idle');
  }
}

export async function managersCpuMs(bench: VmBench): Promise<{ readonly server: number; readonly nodes: number }> {
  const { server, nodes } = await bench.managers();
  return { server: cpuMs(server), nodes: [...nodes.values()].reduce((sum, pid) => sum + cpuMs(pid), 0) };
}
