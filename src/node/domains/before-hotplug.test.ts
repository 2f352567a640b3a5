/**
 * A guest that the version before hotplug has started, with its instance and its record as that version wrote them
 * (definition/testing/guest-before-hotplug.json, never to be written anew): an upgrade changes nothing that it can see.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import { anInput } from '#node/definition/testing/a-vmi.ts';
import { decideHotplug, hotplugStates } from '#node/domains/decide-hotplug.ts';
import { hotplugDevices } from '#node/domains/hotplug-devices.ts';

const FILE = new URL('../definition/testing/guest-before-hotplug.json', import.meta.url);
const { vmi, rows, definition } = JSON.parse(readFileSync(FILE, 'utf8')) as {
  vmi: Stored<VirtualMachineInstance>;
  /** Of the record. */
  rows: readonly LearnedDevice[];
  /** Of domain.json. */
  definition: DomainDefinition;
};

test('its next start is the very same guest', () => {
  const known = { machine: definition.machine, devices: rows };
  const result = defineDomain(anInput(vmi, { known }));
  assert.deepEqual(result, { definition, notes: [], left: [] });
});

test('it is read as having what the record has, where the record has it', () => {
  const placesOf = (devices: readonly LearnedDevice[]) => devices.map(({ id, address }) => [id, address]);
  assert.deepEqual(placesOf(learnedFrom(definition)), placesOf(rows));
});

test('nothing is plugged in or out, and nothing said of it', () => {
  const devices = hotplugDevices(vmi, { definition, leaving: [] }, new Map());
  assert.deepEqual(decideHotplug(devices, new Map(), 0), []);
  assert.deepEqual(
    hotplugStates(devices, new Map(), () => false),
    [],
  );
});
