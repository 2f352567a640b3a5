import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { MachineDescription } from '#formats/machine.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { writeOvf } from '#formats/ovf/write-ovf.ts';
import { arbitraryMachine } from '#formats/testing/arbitrary-machine.ts';

const byId = <T extends { id: string }>(list: readonly T[]) => [...list].sort((a, b) => (a.id < b.id ? -1 : 1));

/** Sorts machines without addresses for their first run, because readers do so, too. */
function comparable(machine: MachineDescription) {
  return {
    ...machine,
    source: undefined,
    disks: byId(machine.disks),
    nics: byId(machine.nics),
    rows: byId(machine.rows),
  };
}

test('reads back every written machine without loss', () => {
  fc.assert(
    fc.property(arbitraryMachine, (machine) => {
      const read = readOvf(writeOvf(machine));
      assert.deepEqual(comparable(read), comparable(machine));
      assert.deepEqual(read.source, { format: 'ovf', product: 'Selfsame', version: '1' });
      assert.equal(writeOvf(read), writeOvf(readOvf(writeOvf(read))));
    }),
    { numRuns: 60 },
  );
});
