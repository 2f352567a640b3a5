/**
 * A guest that was started by the last version without hotplug, with its instance and its record as that version wrote them
 * (definition/testing/guest-before-hotplug.json, which must never be regenerated). An upgrade must not change anything that
 * the guest can see.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { anInput } from '#node/definition/testing/a-vmi.ts';
import { decideHotplug, hotplugStates } from '#node/domains/hotplug/decide-hotplug.ts';
import { hotplugDevices } from '#node/domains/hotplug/hotplug-devices.ts';

const FILE = new URL('../../definition/testing/guest-before-hotplug.json', import.meta.url);
const { vmi, rows, definition } = JSON.parse(readFileSync(FILE, 'utf8')) as {
  vmi: Stored<VirtualMachineInstance>;
  /** The rows of the identity record. */
  rows: readonly LearnedDevice[];
  /** The content of domain.json. */
  definition: DomainDefinition;
};

test('the next start defines the same guest', () => {
  const known = { machine: definition.machine, devices: rows };
  const result = defineDomain(anInput(vmi, { known }));
  assert.deepEqual(result, { definition, notes: [], omitted: [] });
});

test('the guest is learned with the addresses of its record', () => {
  const placesOf = (devices: readonly LearnedDevice[]) => devices.map(({ id, address }) => [id, address]);
  assert.deepEqual(placesOf(toLearnedDevices(definition)), placesOf(rows));
});

test('no device is plugged, unplugged or reported', () => {
  const devices = hotplugDevices(vmi, { definition, unplugging: [] }, new Map());
  assert.deepEqual(decideHotplug(devices, new Map(), 0), []);
  assert.deepEqual(
    hotplugStates(devices, new Map(), () => false),
    [],
  );
});
