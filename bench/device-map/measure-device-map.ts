/**
 * Measures the cost of tracking the devices of thousands of simulated guests: at rest, and when some of them get
 * another device. Everything except QEMU is real: agents, their HTTPS endpoints, the record of each VM.
 */
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { JobProcess } from '../jobs.ts';
import { pause } from '../pause.ts';
import type { Fleet, FleetJob } from '../vms/fleet-load.ts';
import { NAMESPACE } from '../vms/manifests.ts';
import { managersCpuMs, waitUntilIdle } from '../vms/measure-fleet.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import { subtractCounts, readListCounts, type ListCounts } from './list-counts.ts';

export interface DeviceMapOptions {
  readonly vms: number;
  /** The number of VMs that get another interface. */
  readonly changed: number;
  readonly restMs: number;
}

export interface Span extends ListCounts {
  readonly seconds: number;
  readonly serverCpuMs: number;
  readonly nodesCpuMs: number;
}

export interface DeviceMapFigures {
  readonly vms: number;
  readonly changed: number;
  readonly nodes: number;
  /** All VMs start and are learned. */
  readonly start: Span;
  readonly rest: Span;
  readonly change: Span;
}

const NODES = 2;
const CLIENTS = 16;
const POLL_MS = 250;
const LEARN_TIMEOUT_MS = 120_000;
const NIC = 'late';

export async function measureDeviceMap(bench: VmBench, options: DeviceMapOptions): Promise<DeviceMapFigures> {
  const { vms, changed, restMs } = options;
  await bench.startPlane({ nodes: NODES, hypervisor: 'fake' });
  const client = await bench.client();
  const start = await measureSpan(bench, async () => {
    await startFleet(bench, vms);
    await waitUntilLearned(bench, { vms });
  });
  await waitUntilIdle(bench);
  const rest = await measureSpan(bench, () => pause(restMs));
  const before = (await readListCounts(await bench.target())).vms;
  const names = Array.from({ length: changed }, (_, n) => `fleet-${Math.floor((n * vms) / changed)}`);
  const change = await measureSpan(bench, async () => {
    await Promise.all(names.map((name) => addInterface(client, name)));
    await waitUntilLearned(bench, { vms: before + changed });
  });
  await waitUntilIdle(bench);
  for (const name of names) await expectInRecord(client, name);
  return { vms, changed, nodes: NODES, start, rest, change };
}

async function measureSpan(bench: VmBench, work: () => Promise<unknown>): Promise<Span> {
  const target = await bench.target();
  const [counts, cpu, from] = [await readListCounts(target), await managersCpuMs(bench), performance.now()];
  await work();
  const seconds = (performance.now() - from) / 1000;
  const used = await managersCpuMs(bench);
  return {
    ...subtractCounts(counts, await readListCounts(target)),
    seconds,
    serverCpuMs: used.server - cpu.server,
    nodesCpuMs: used.nodes - cpu.nodes,
  };
}

async function startFleet(bench: VmBench, count: number): Promise<void> {
  const load = new JobProcess<FleetJob>('./vms/fleet-load.ts');
  try {
    await load.run<Fleet>({ target: await bench.target(), count, clients: CLIENTS });
  } finally {
    await load.stop();
  }
}

/** Resolves when the server has read the devices of that many VMs since its start. */
async function waitUntilLearned(bench: VmBench, { vms }: { readonly vms: number }): Promise<void> {
  const target = await bench.target();
  const deadline = performance.now() + LEARN_TIMEOUT_MS;
  for (;;) {
    const counts = await readListCounts(target);
    if (counts.vms >= vms) return;
    if (performance.now() > deadline)
      throw new Error(`The devices of ${counts.vms} of ${vms} VMs were read; expected all`);
    await pause(POLL_MS);
  }
}

/** Adds an interface while the guest runs. */
async function addInterface(client: Client, name: string): Promise<void> {
  const spec = '/spec/template/spec';
  const body = [
    { op: 'add', path: `${spec}/domain/devices/interfaces/-`, value: { name: NIC, bridge: {} } },
    { op: 'add', path: `${spec}/networks/-`, value: { name: NIC, multus: { networkName: 'br0' } } },
  ];
  await client.patch(VIRTUAL_MACHINES, { namespace: NAMESPACE, name }, { type: 'json', body });
}

async function expectInRecord(client: Client, name: string): Promise<void> {
  const { status } = await client.get(VIRTUAL_MACHINE_IDENTITIES, { namespace: NAMESPACE, name });
  const row = status?.devices?.find(({ id }) => id === `nic-${NIC}`);
  if (row?.address === undefined) throw new Error(`The record of ${name} has no address for the interface ${NIC}`);
}
