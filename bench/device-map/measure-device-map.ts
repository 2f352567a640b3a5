/**
 * What it costs to know where the devices of thousands of simulated guests are: while nothing changes, and when some of
 * them get one more. Everything but QEMU is real: agents, their HTTPS endpoints, the record of each VM.
 */
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { JobProcess } from '../jobs.ts';
import { pause } from '../pause.ts';
import type { Fleet, FleetJob } from '../vms/fleet-load.ts';
import { NAMESPACE } from '../vms/manifests.ts';
import { managersCpuMs, quiet } from '../vms/measure-fleet.ts';
import type { VmGround } from '../vms/vm-ground.ts';
import { countsBetween, listCounts, type ListCounts } from './list-counts.ts';

export interface DeviceMapOptions {
  readonly vms: number;
  /** How many of them get one more interface. */
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
  /** All of them start, and are learned. */
  readonly start: Span;
  readonly rest: Span;
  readonly change: Span;
}

const NODES = 2;
const CLIENTS = 16;
const LOOK_EVERY_MS = 250;
const LEARN_TIMEOUT_MS = 120_000;
const NIC = 'late';

export async function measureDeviceMap(ground: VmGround, options: DeviceMapOptions): Promise<DeviceMapFigures> {
  const { vms, changed, restMs } = options;
  await ground.startPlane({ nodes: NODES, hypervisor: 'fake' });
  const client = await ground.client();
  const start = await spanOf(ground, async () => {
    await startFleet(ground, vms);
    await learned(ground, { vms });
  });
  await quiet(ground);
  const rest = await spanOf(ground, () => pause(restMs));
  const before = (await listCounts(await ground.target())).vms;
  const names = Array.from({ length: changed }, (_, n) => `fleet-${Math.floor((n * vms) / changed)}`);
  const change = await spanOf(ground, async () => {
    await Promise.all(names.map((name) => addInterface(client, name)));
    await learned(ground, { vms: before + changed });
  });
  await quiet(ground);
  for (const name of names) await expectOnRecord(client, name);
  return { vms, changed, nodes: NODES, start, rest, change };
}

async function spanOf(ground: VmGround, something: () => Promise<unknown>): Promise<Span> {
  const target = await ground.target();
  const [counts, cpu, from] = [await listCounts(target), await managersCpuMs(ground), performance.now()];
  await something();
  const seconds = (performance.now() - from) / 1000;
  const used = await managersCpuMs(ground);
  return {
    ...countsBetween(counts, await listCounts(target)),
    seconds,
    serverCpuMs: used.server - cpu.server,
    nodesCpuMs: used.nodes - cpu.nodes,
  };
}

async function startFleet(ground: VmGround, count: number): Promise<void> {
  const load = new JobProcess<FleetJob>('./vms/fleet-load.ts');
  try {
    await load.ask<Fleet>({ target: await ground.target(), count, clients: CLIENTS });
  } finally {
    await load.stop();
  }
}

/** Until that many VMs were asked for since the server started. */
async function learned(ground: VmGround, { vms }: { readonly vms: number }): Promise<void> {
  const target = await ground.target();
  const deadline = performance.now() + LEARN_TIMEOUT_MS;
  for (;;) {
    const counts = await listCounts(target);
    if (counts.vms >= vms) return;
    if (performance.now() > deadline) throw new Error(`${counts.vms} of ${vms} VMs were asked for; expected all`);
    await pause(LOOK_EVERY_MS);
  }
}

/** While the guest runs. */
async function addInterface(client: Client, name: string): Promise<void> {
  const spec = '/spec/template/spec';
  const body = [
    { op: 'add', path: `${spec}/domain/devices/interfaces/-`, value: { name: NIC, bridge: {} } },
    { op: 'add', path: `${spec}/networks/-`, value: { name: NIC, multus: { networkName: 'br0' } } },
  ];
  await client.patch(VIRTUAL_MACHINES, { namespace: NAMESPACE, name }, { type: 'json', body });
}

async function expectOnRecord(client: Client, name: string): Promise<void> {
  const { status } = await client.get(VIRTUAL_MACHINE_IDENTITIES, { namespace: NAMESPACE, name });
  const row = status?.devices?.find(({ id }) => id === `nic-${NIC}`);
  if (row?.address === undefined)
    throw new Error(`The record of ${name} has no ${NIC} interface; expected its address`);
}
