/** The measures of VMs, each with a plane of its own. */
import type { Options, VmTopic } from '../options.ts';
import type { Row } from '../report.ts';
import { measureFleet } from './measure-fleet.ts';
import { measureMemory } from './measure-memory.ts';
import { measureMigration } from './measure-migration.ts';
import { measureStart } from './measure-start.ts';
import type { VmGround } from './vm-ground.ts';

export async function* measureVms(topic: VmTopic, ground: VmGround, options: Options): AsyncGenerator<Row> {
  yield* await rowsOf(topic, ground, options);
}

function rowsOf(topic: VmTopic, ground: VmGround, { vmStarts, vmMigrations, guests, fleet }: Options): Promise<Row[]> {
  switch (topic) {
    case 'vm-start':
      return measureStart(ground, vmStarts);
    case 'vm-memory':
      return measureMemory(ground, guests);
    case 'vm-migration':
      return measureMigration(ground, vmMigrations);
    case 'vm-fleet':
      return measureFleet(ground, fleet);
  }
}
