/**
 * Thousands of VMs on simulated guests (`--hypervisor fake`): everything but QEMU is real, and each VM goes the whole
 * way from the API over controllers, scheduler and agent to its status.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { listAll } from '#client/paged-list.ts';
import { JobProcess } from '../jobs.ts';
import { pause } from '../pause.ts';
import { cpuMs } from '../proc-files.ts';
import type { Row } from '../report.ts';
import type { Fleet, FleetJob } from './fleet-load.ts';
import { managerMemory, memoryNote, residentBytes, SETTLING } from './manager-memory.ts';
import { NAMESPACE } from './manifests.ts';
import type { VmGround } from './vm-ground.ts';

const CLIENTS = 16;
const PLANE = { nodes: 2, hypervisor: 'fake', nodeOptions: SETTLING } as const;
const LOOK_EVERY_MS = 500;
/** Less than this of one core is the heartbeat of leases and timers. */
const QUIET_CORES = 0.1;
const QUIET_TIMEOUT_MS = 300_000;

export async function measureFleet(ground: VmGround, count: number): Promise<Row[]> {
  // The very first start makes the store, the certificates and the kinds.
  await ground.startPlane(PLANE);
  await ground.stopPlane();
  const empty = await ground.startPlane(PLANE);
  const before = await managerMemory(ground);
  const cpuBefore = await managersCpuMs(ground);
  const load = new JobProcess<FleetJob>('./vms/fleet-load.ts');
  let fleet: Fleet;
  try {
    fleet = await load.ask<Fleet>({ target: await ground.target(), count, clients: CLIENTS });
  } finally {
    await load.stop();
  }
  const cpu = await managersCpuMs(ground);
  const serverCores = (cpu.server - cpuBefore.server) / 1000 / fleet.seconds;
  const nodeCores = (cpu.nodes - cpuBefore.nodes) / 1000 / fleet.seconds;
  await quiet(ground);
  const after = await managerMemory(ground);
  const revisionBefore = await revisionWhenAllRun(ground, count);
  await ground.stopPlane();

  const from = performance.now();
  const again = await ground.startPlane(PLANE);
  await revisionWhenAllRun(ground, count);
  const seconds = (performance.now() - from) / 1000;
  const quietSeconds = seconds + (await quiet(ground));
  const writes = (await revisionWhenAllRun(ground, count)) - revisionBefore;
  const restarted = await managerMemory(ground);
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
      note: `ready after ${(again.startMs / 1000).toFixed(2)} s; idle after ${quietSeconds.toFixed(1)} s and ${writes} writes; floor: without VMs`,
    },
  ];
}

/** Throws where a VM does not run: after a restart each must still. */
async function revisionWhenAllRun(ground: VmGround, count: number): Promise<number> {
  const { items, resourceVersion } = await listAll(await ground.client(), VIRTUAL_MACHINES, { namespace: NAMESPACE });
  const running = items.filter(({ status }) => status?.printableStatus === 'Running').length;
  if (running !== count) throw new Error(`${running} of ${count} VMs are Running; expected all`);
  return Number(resourceVersion);
}

/** Resolves when the managers do nothing any more, with the seconds until then. */
export async function quiet(ground: VmGround): Promise<number> {
  const from = performance.now();
  for (let busyUntil = from; ;) {
    const before = await managersCpuMs(ground);
    await pause(LOOK_EVERY_MS);
    const now = await managersCpuMs(ground);
    const cores = (now.server + now.nodes - before.server - before.nodes) / LOOK_EVERY_MS;
    if (cores > QUIET_CORES) busyUntil = performance.now();
    else if (performance.now() - busyUntil >= 2 * LOOK_EVERY_MS) return (busyUntil - from) / 1000;
    if (performance.now() - from > QUIET_TIMEOUT_MS) throw new Error('The plane does not come to rest');
  }
}

export async function managersCpuMs(ground: VmGround): Promise<{ readonly server: number; readonly nodes: number }> {
  const { server, nodes } = await ground.managers();
  return { server: cpuMs(server), nodes: [...nodes.values()].reduce((sum, pid) => sum + cpuMs(pid), 0) };
}
