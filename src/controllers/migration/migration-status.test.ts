import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MigrationProgress } from '#api/migration/migration-state.ts';
import type { MigrationPhase } from '#api/virtual-machine-instance-migration/kind.ts';
import { formatProgress } from '#controllers/migration/migration-status.ts';

const progress = (dataTotalBytes?: number, dataRemainingBytes?: number): MigrationProgress => ({
  migrationUid: 'm',
  phase: 'Copying',
  ...(dataTotalBytes !== undefined && { dataTotalBytes }),
  ...(dataRemainingBytes !== undefined && { dataRemainingBytes }),
});

const cases: Record<string, [MigrationPhase, MigrationProgress | undefined, string | undefined]> = {
  'no progress before the amount of data is known': ['Scheduling', undefined, undefined],
  'no progress without a total': ['Running', progress(), undefined],
  'the part that is on the target': ['Running', progress(1000, 554), '44%'],
  'not 100% before the guest is on the target': ['Running', progress(1000, 0), '99%'],
  'not less than 0% if the guest writes faster than it is copied': ['Running', progress(1000, 1500), '0%'],
  'where a failed migration stopped': ['Failed', progress(1000, 500), '50%'],
  '100% once it has succeeded': ['Succeeded', progress(1000, 10), '100%'],
};
for (const [title, [phase, reported, want]] of Object.entries(cases)) {
  test(`shows ${title}`, () => assert.equal(formatProgress(phase, reported), want));
}
