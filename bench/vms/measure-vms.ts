/** The measurements of VMs, each with its own plane. */
import type { Options, VmTopic } from '../options.ts';
import type { Row } from '../report.ts';
import { measureFleet } from './measure-fleet.ts';
import { measureMemory } from './measure-memory.ts';
import { measureMigration } from './measure-migration.ts';
import { measureSandbox } from './measure-sandbox.ts';
import { measureStart } from './measure-start.ts';
import type { VmBench } from './vm-bench.ts';

export async function* measureVms(topic: VmTopic, bench: VmBench, options: Options): AsyncGenerator<Row> {
  yield* await measureTopic(topic, bench, options);
}

function measureTopic(
  topic: VmTopic,
  bench: VmBench,
  { vmStarts, vmMigrations, guests, fleet }: Options,
): Promise<Row[]> {
  switch (topic) {
    case 'vm-start':
      return measureStart(bench, vmStarts);
    case 'vm-sandbox':
      return measureSandbox(bench, vmStarts);
    case 'vm-memory':
      return measureMemory(bench, guests);
    case 'vm-migration':
      return measureMigration(bench, vmMigrations);
    case 'vm-fleet':
      return measureFleet(bench, fleet);
  }
}
