/** Measures what the network adds to the start of a VM: two planes take turns, one of them with user-mode networking. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { exampleVm, NAMESPACE } from '../vms/manifests.ts';
import { StartMarks } from '../vms/start-marks.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import { SUBNETS } from './guest-traffic.ts';

const MAX_MORE_MS = 60;

export async function measureNetworkStart(
  planes: { readonly connected: VmBench; readonly userMode: VmBench },
  rounds: number,
): Promise<Row[]> {
  await planes.connected.startPlane({ nodes: 1, hypervisor: 'qemu', guestSubnets: SUBNETS });
  await planes.userMode.startPlane({ nodes: 1, hypervisor: 'qemu' });
  const connected = await Starter.open(await planes.connected.client());
  const userMode = await Starter.open(await planes.userMode.client());
  // The first ones fill caches and warm up V8.
  for (const starter of [connected, userMode]) await starter.start('warm-up');
  const [withNetwork, without]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const turns = [
      async () => void withNetwork.push(await connected.start(`bench-${round}`)),
      async () => void without.push(await userMode.start(`bench-${round}`)),
    ];
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
  }
  for (const starter of [connected, userMode]) starter.stop();
  const [engine, floor] = [median(withNetwork), median(without)];
  return [
    {
      what: 'VM start with the network',
      unit: 'ms',
      engine,
      floor,
      bar: { moreThanFloor: MAX_MORE_MS },
      note: `${(engine - floor).toFixed(0)} ms more than in user mode, from the bound pod until it runs; median of ${rounds}`,
    },
  ];
}

class Starter {
  readonly #client: Client;
  readonly #marks: StartMarks;

  static async open(client: Client): Promise<Starter> {
    return new Starter(client, await StartMarks.open(client));
  }

  private constructor(client: Client, marks: StartMarks) {
    this.#client = client;
    this.#marks = marks;
  }

  /** Starts a VM and deletes it again. Returns the milliseconds from the binding of its pod until it runs. */
  async start(name: string): Promise<number> {
    await this.#client.create(VIRTUAL_MACHINES, exampleVm(name));
    const bound = await this.#marks.timeOf(name, 'podBound');
    const running = await this.#marks.timeOf(name, 'podRunning');
    await this.#client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
    await this.#marks.timeOf(name, 'gone');
    return running - bound;
  }

  stop(): void {
    this.#marks.stop();
  }
}
