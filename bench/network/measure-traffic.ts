/**
 * Measures throughput and latency of two guests of the default network, compared with bare QEMU on a bridge and with
 * user-mode networking. All six guests run at the same time, and the transfers take turns, so that drift affects all alike.
 */
import { join } from 'node:path';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { pause } from '../pause.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { NAMESPACE } from '../vms/manifests.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import { BareGuests } from './bare-guests.ts';
import {
  echoFromHost,
  GUEST_PORTS,
  pingBetween,
  pour,
  pourFromHost,
  SUBNETS,
  trafficVm,
  waitUntilServing,
  type Reachable,
} from './guest-traffic.ts';
import type { NetworkOptions } from './measure-network.ts';

const MIN_SHARE = 0.9;
const ADDRESS_TIMEOUT_MS = 120_000;
const POLL_MS = 200;

interface Pair {
  /** As this process reaches them. */
  readonly left: Reachable;
  readonly right: Reachable;
  /** As the left guest reaches the right one. */
  readonly peer: Reachable;
}

const MEASURES = ['guestToGuest', 'hostToGuest', 'ping', 'echo'] as const;
type Figures = Record<(typeof MEASURES)[number], number[]>;

export async function measureTraffic(bench: VmBench, options: NetworkOptions): Promise<Row[]> {
  await bench.startPlane({ nodes: 1, hypervisor: 'qemu', guestSubnets: SUBNETS });
  const client = await bench.client();
  const guestDir = join(bench.dataDir, 'nodes', 'node-1', 'guest');
  const bare = new BareGuests({
    kernelPath: join(guestDir, 'vmlinuz'),
    initrdPath: join(guestDir, 'initrd.gz'),
  });
  try {
    const names = ['left', 'right'];
    for (const name of names) await client.create(VIRTUAL_MACHINES, trafficVm(name));
    const own = await Promise.all(names.map((name) => reachVm(client, name)));
    const bridged = bare.startOnBridge();
    const userMode = await bare.startInUserMode();
    const pairs = [pairOf(own, own[1]), pairOf(bridged, bridged[1]), pairOf(userMode.guests, userMode.second)] as const;
    for (const { left, right } of pairs) for (const guest of [left, right]) await waitUntilServing(guest);
    const figures = pairs.map((): Figures => ({ guestToGuest: [], hostToGuest: [], ping: [], echo: [] }));
    // The first round does not count.
    for (let round = 0; round <= options.rounds; round++) {
      for (const measure of MEASURES) {
        const turns = pairs.map((pair, at) => async () => {
          const value = await take(measure, pair, options);
          if (round > 0) figures[at]?.[measure].push(value);
        });
        for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
      }
    }
    for (const name of names) await client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
    return rowsOf(figures, options);
  } finally {
    await bare.stop();
  }
}

function take(
  measure: (typeof MEASURES)[number],
  { left, right, peer }: Pair,
  { blocks, pings }: NetworkOptions,
): Promise<number> {
  switch (measure) {
    case 'guestToGuest':
      return pour(left, peer, blocks);
    case 'hostToGuest':
      return pourFromHost(right, blocks);
    case 'ping':
      // In user mode, a guest can ping only its gateway: the round trip is that through a port of the host.
      return peer.ports === GUEST_PORTS ? pingBetween(left, peer, pings) : Promise.resolve(Number.NaN);
    case 'echo':
      return echoFromHost(right, pings);
  }
}

function rowsOf([own, bridged, userMode]: readonly Figures[], { rounds, blocks }: NetworkOptions): Row[] {
  if (own === undefined || bridged === undefined || userMode === undefined) return [];
  const row = (what: string, measure: (typeof MEASURES)[number]): Row => {
    const isRate = measure === 'guestToGuest' || measure === 'hostToGuest';
    const [engine, floor, user] = [median(own[measure]), median(bridged[measure]), median(userMode[measure])];
    const ratio = median(own[measure].map((value, at) => value / (bridged[measure][at] ?? Number.NaN)));
    const share = ((isRate ? engine / user : user / engine) * 100).toFixed(0);
    const userText = isRate ? `${(user / 1e6).toFixed(1)} MB/s` : `${user.toFixed(2)} ms`;
    return {
      what,
      unit: isRate ? 'bytesPerSecond' : 'ms',
      engine,
      floor,
      ratio,
      bar: isRate ? { ratioAtLeast: MIN_SHARE } : { below: floor / MIN_SHARE },
      note: Number.isNaN(user)
        ? 'impossible in user mode'
        : `user mode: ${userText}, of which this is ${share} %${isRate ? '' : ' of the speed'}`,
    };
  };
  const first = row('guest to guest', 'guestToGuest');
  return [
    { ...first, note: `${first.note}; ${rounds} times ${blocks / 16} MiB` },
    row('host to guest', 'hostToGuest'),
    row('  round trip of guests (ping)', 'ping'),
    row('  round trip of the host (TCP)', 'echo'),
  ];
}

function pairOf([left, right]: readonly Reachable[], peer: Reachable | undefined): Pair {
  if (left === undefined || right === undefined || peer === undefined)
    throw new Error('Cannot measure: there are no two guests');
  return { left, right, peer };
}

/** Waits for the address of a VM. */
export async function reachVm(client: Client, name: string): Promise<Reachable> {
  const deadline = performance.now() + ADDRESS_TIMEOUT_MS;
  for (;;) {
    const { items } = await client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE });
    const address = items.find(({ metadata }) => metadata.name === name)?.status?.interfaces?.[0]?.ipAddress;
    if (address !== undefined) return { address, ports: GUEST_PORTS };
    if (performance.now() > deadline) throw new Error(`Cannot measure: VM ${name} has no address`);
    await pause(POLL_MS);
  }
}
