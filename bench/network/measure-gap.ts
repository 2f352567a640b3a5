/** Measures how long a TCP connection to a guest stands still during a live migration, beside the reported downtime. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { NAMESPACE } from '../vms/manifests.ts';
import { migrateVm } from '../vms/measure-migration.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import { open, SUBNETS, trafficVm, waitUntilServing } from './guest-traffic.ts';
import { reachVm } from './measure-traffic.ts';

const MAX_MORE_MS = 200;
const LINE_MS = 5;
const NAME = 'mover';

export async function measureGap(bench: VmBench, migrations: number): Promise<Row[]> {
  await bench.startPlane({ nodes: 2, hypervisor: 'qemu', guestSubnets: SUBNETS });
  const client = await bench.client();
  await client.create(VIRTUAL_MACHINES, trafficVm(NAME));
  const guest = await reachVm(client, NAME);
  await waitUntilServing(guest);
  const socket = await open(guest.address, guest.ports.echo);
  let [last, longest] = [performance.now(), 0];
  let problem: Error | undefined;
  socket.on('data', () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  });
  socket.on('error', (error) => (problem ??= error));
  socket.on('close', () => (problem ??= new Error('closed')));
  const timer = setInterval(() => socket.write('x\n'), LINE_MS);
  const gaps: number[] = [];
  const downtimes: number[] = [];
  const quiet: number[] = [];
  try {
    // The first migration warms up and does not count.
    for (let n = 0; n <= migrations; n++) {
      longest = 0;
      const { downtimeMs } = await migrateVm(client, NAME);
      if (problem !== undefined) throw new Error('A connection did not survive a migration', { cause: problem });
      if (n > 0) gaps.push(longest);
      if (n > 0) downtimes.push(downtimeMs);
      longest = 0;
      await new Promise((resolve) => setTimeout(resolve, 1000));
      if (n > 0) quiet.push(longest);
    }
  } finally {
    clearInterval(timer);
    problem ??= new Error('ended');
    socket.destroy();
  }
  await client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: NAME });
  const texts = gaps.map((gap, at) => `${gap.toFixed(0)}/${downtimes[at]?.toFixed(0)}`).join(', ');
  return [
    {
      what: 'gap of a stream in a migration',
      unit: 'ms',
      engine: median(gaps),
      floor: median(downtimes),
      bar: { moreThanFloor: MAX_MORE_MS },
      note: `floor: the reported downtime; ${texts} ms; the longest gap of a second without migration is ${median(quiet).toFixed(0)} ms; medians of ${migrations}`,
    },
  ];
}
