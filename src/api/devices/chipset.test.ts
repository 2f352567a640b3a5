import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chipsetOf } from '#api/devices/chipset.ts';

const cases: Record<string, ReturnType<typeof chipsetOf>> = {
  q35: 'q35',
  'pc-q35-7.2': 'q35',
  'pc-q35-rhel8.2.0': 'q35',
  pc: 'i440fx',
  'pc-i440fx-7.2': 'i440fx',
  'pc-i440fx-rhel7.6.0': 'i440fx',
  'pc-1.0': 'i440fx',
  'pc-q350': undefined,
  microvm: undefined,
  pseries: undefined,
  '': undefined,
};

for (const [type, chipset] of Object.entries(cases)) {
  test(`${type || 'no machine type'} has ${chipset ?? 'no known chipset'}`, () => {
    assert.equal(chipsetOf(type), chipset);
  });
}
