/**
 * Applies a thousand operations to a VM, to its spec and its running guest: no device that stays ever moves, no two
 * devices share a place, every place exists, and the diff of the identity announces the controllers and root ports that the
 * next start adds. Once for each chipset.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Chipset } from '#api/devices/chipset.ts';
import { RecordedVm } from '#node/definition/testing/recorded-vm.ts';
import { FULL_RUN } from '#test/support/full-run.ts';

const OPERATIONS = 1000;
const RUNS = FULL_RUN ? 5 : 2;

/** The relative frequency of each operation. `pick` selects the device. */
const WEIGHTS = {
  addNic: 4,
  addDisk: 4,
  removeNic: 3,
  removeDisk: 3,
  unplugNic: 3,
  replugNic: 3,
  unplugDisk: 2,
  replugDisk: 2,
  pinNic: 1,
  changeModel: 2,
  reorder: 2,
  changeMachine: 1,
  changeHardware: 3,
  restart: 6,
  reimport: 1,
} as const;
type Operation = keyof typeof WEIGHTS;

const operationArb = fc.record({
  what: fc.oneof(
    ...Object.entries(WEIGHTS).map(([what, weight]) => ({ weight, arbitrary: fc.constant(what as Operation) })),
  ),
  pick: fc.nat({ max: 1000 }),
});
const operationsArb = fc.array(operationArb, { minLength: OPERATIONS, maxLength: OPERATIONS, size: 'max' });

for (const chipset of ['q35', 'i440fx'] as const satisfies readonly Chipset[]) {
  test(`devices neither move nor collide, and new ports are announced, in ${OPERATIONS} operations: ${chipset}`, () => {
    let announced = 0;
    const done = new Set<string>();
    fc.assert(
      fc.property(operationsArb, (operations) => {
        const vm = new RecordedVm(chipset);
        vm.restart();
        for (const { what, pick } of operations) {
          if (vm[what](pick)) done.add(what);
          vm.check();
        }
        announced += vm.addedControllers;
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
    assert.deepEqual(done, new Set(Object.keys(WEIGHTS)), 'every operation happened');
    assert.ok(announced > (chipset === 'q35' ? 8 : 0), 'controllers were added, and ports with q35');
  });
}

test('no ports are announced if a device leaves its port and another one gets it', () => {
  const vm = new RecordedVm('q35');
  vm.restart();
  // Seven virtio interfaces and a virtio disk use all eight ports.
  for (let i = 0; i < 7; i++) vm.addNic(8);
  vm.addDisk(6);
  vm.restart();
  vm.addDisk(12);
  // An interface becomes an rtl8139, which is not behind a port.
  assert.ok(vm.changeModel(16));
  assert.equal(vm.addedControllers, 0);
});
