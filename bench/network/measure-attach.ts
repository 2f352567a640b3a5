/** Measures the namespaces of many guests on one node: how long each takes, and the memory of its DHCP server. */
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import type { Stored } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import { LinuxPodNetworks } from '#node/network/linux/linux-pod-networks.ts';
import type { NetworkRequest } from '#node/network/pod-networks.ts';
import type { Row } from '../report.ts';
import { median, percentile } from '../statistics.ts';

const NETWORK: Stored<GuestNetwork> = {
  apiVersion: 'network.selfsame.io/v1',
  kind: 'GuestNetwork',
  metadata: {
    name: 'default',
    uid: '00000000-0000-4000-8000-00000000be7c',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { subnets: ['10.64.0.0/16', 'fd00:5e1f:64::/64'] },
};

export async function measureAttach(count: number): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-bench-network-'));
  const networks = new LinuxPodNetworks({
    nodeDir: dir,
    clock: systemClock,
    log: silentLog,
    hostSide: (plan) => new LinuxHostSide({ plan, dir: join('/run/selfsame/networks', plan.key) }),
  });
  try {
    await networks.adopt();
    await networks.setDefaultNetwork(NETWORK);
    const attached: number[] = [];
    for (let n = 0; n < count; n++)
      attached.push(await timeOf(() => networks.attach(requestOf(n), { isSilent: false })));
    const dhcpDir = join(dir, 'network', 'dhcp');
    const pidFiles = (await readdir(dhcpDir)).filter((name) => name.endsWith('.pid'));
    if (pidFiles.length !== count)
      throw new Error(`Cannot measure: ${pidFiles.length} DHCP servers; expected ${count}`);
    const bytes = pidFiles
      .map((name) => proportionalBytes(Number(readFileSync(join(dhcpDir, name), 'utf8'))))
      .reduce((sum, size) => sum + size, 0);
    const detached: number[] = [];
    for (let n = 0; n < count; n++) detached.push(await timeOf(() => networks.detach(requestOf(n).id)));
    return [
      {
        what: 'network namespace of a guest',
        unit: 'ms',
        engine: median(attached),
        p50Ms: median(attached),
        p99Ms: percentile([...attached], 0.99),
        note: `${count} one after another; the last ten took ${median(attached.slice(-10)).toFixed(0)} ms each; its removal takes ${median(detached).toFixed(0)} ms`,
      },
      {
        what: '  memory of its DHCP server',
        unit: 'bytes',
        engine: bytes,
        note: `of all ${count} dnsmasq, shared pages counted once: ${(bytes / count / 1024).toFixed(0)} KiB each`,
      },
    ];
  } finally {
    await networks.close();
    await rm(dir, { recursive: true, force: true });
  }
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

function requestOf(n: number): NetworkRequest {
  const [high, low] = [(n >> 8) + 1, n & 255];
  const hex = (n + 0x1_00_00).toString(16).padStart(6, '0');
  return {
    id: `00000000-0000-4000-8000-${n.toString().padStart(12, '0')}`,
    user: undefined,
    network: {
      pod: { namespace: 'default', name: `guest-${n}`, uid: `${n}` },
      hostname: `guest-${n}`,
      searchDomains: ['svc.cluster.local'],
    },
    interfaces: [
      {
        tap: 'tap0',
        macAddress: `02:00:00:${hex.match(/../g)?.join(':')}`,
        attachment: {
          podInterface: 'eth0',
          network: { type: 'default' },
          binding: 'masquerade',
          addresses: [`10.64.${high}.${low}/16`, `fd00:5e1f:64::${hex.slice(0, 2)}:${hex.slice(2)}/64`],
          guestAddresses: ['10.0.2.2/24', 'fd10:0:2::2/120'],
        },
      },
    ],
  };
}

function proportionalBytes(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? Number.NaN) * 1024;
}
