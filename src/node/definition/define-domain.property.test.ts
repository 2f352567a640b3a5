/**
 * A VM is started again and again, its devices coming, going and changing places in the spec: none of them ever moves.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { pciAddressFromMap } from '#api/devices/pci-address.ts';
import { portOf } from '#api/devices/root-ports.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import type { Device, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

interface Start {
  readonly disks: readonly Disk[];
  readonly interfaces: readonly Interface[];
}

/**
 * The bus is part of the name, because a disk that changes its bus is another device to the guest. There are few names,
 * so that places never run out; otherwise places of devices that are gone would be reused.
 */
const diskArb: fc.Arbitrary<Disk> = fc
  .tuple(fc.constantFrom('virtio', 'virtio', 'scsi', 'sata'), fc.nat({ max: 2 }))
  .map(([bus, i]) => ({ name: `${bus}${i}`, disk: { bus } }));
const interfaceArb: fc.Arbitrary<Interface> = fc.nat({ max: 7 }).map((i) => ({ name: `net${i}` }));
const byName = { selector: ({ name }: { name: string }) => name };
const startArb: fc.Arbitrary<Start> = fc.record({
  disks: fc.uniqueArray(diskArb, { ...byName, maxLength: 8 }),
  interfaces: fc.uniqueArray(interfaceArb, { ...byName, maxLength: 6 }),
});
const startsArb = fc.array(startArb, { minLength: 2, maxLength: 6 });

function start({ disks, interfaces }: Start, known: readonly LearnedDevice[]): DomainDefinition {
  const vmi = aVmi(
    { devices: { disks: [...disks], interfaces: [...interfaces] } },
    {
      volumes: disks.map(({ name }) => ({ name, emptyDisk: { capacity: '1Mi' } })),
      networks: interfaces.map(({ name }) => ({ name, pod: {} })),
    },
  );
  const { definition, problems } = defineDomain(anInput(vmi, { known: { devices: known } }));
  assert.deepEqual(problems, undefined);
  return definition;
}

/** Returns the record after a start: the devices of this run, and earlier ones that the spec no longer has. */
function recordOf(definition: DomainDefinition, before: readonly LearnedDevice[]): LearnedDevice[] {
  const learned = toLearnedDevices(definition);
  const ids = new Set(learned.map(({ id }) => id));
  return [...learned, ...before.filter(({ id }) => !ids.has(id))];
}

const isPort = ({ device }: LearnedDevice) => device === 'pcie-root-port';

test('a device has the same address at every start', () => {
  fc.assert(
    fc.property(startsArb, (starts) => {
      const first = new Map<string, unknown>();
      let record: LearnedDevice[] = [];
      for (const next of starts) {
        const definition = start(next, record);
        for (const { id, address } of definition.devices) {
          if (first.has(id)) assert.deepEqual(address, first.get(id), `${id} moved`);
          first.set(id, address);
        }
        record = recordOf(definition, record);
      }
    }),
  );
});

test('no two devices of a guest share an address', () => {
  fc.assert(
    fc.property(startsArb, (starts) => {
      let record: LearnedDevice[] = [];
      for (const next of starts) {
        const definition = start(next, record);
        const places = definition.devices.flatMap((device) => {
          if (device.address === undefined) return [];
          const controller = device.type === 'disk' ? device.bus : '';
          const isDrive = device.address['type'] === 'drive';
          return [`${isDrive ? controller : ''} ${JSON.stringify(device.address)}`];
        });
        assert.deepEqual(places, [...new Set(places)]);
        record = recordOf(definition, record);
      }
    }),
  );
});

test('the same spec and record give the same guest, and after a run the order of the spec does not matter', () => {
  fc.assert(
    fc.property(startArb, startArb, (before, next) => {
      const record = recordOf(start(before, []), []);
      const definition = start(next, record);
      assert.deepEqual(start(next, record), definition);
      const after = recordOf(definition, record);
      const reversed = start({ disks: next.disks.toReversed(), interfaces: next.interfaces.toReversed() }, after);
      const addresses = ({ devices }: DomainDefinition) =>
        Object.fromEntries(devices.map(({ id, address }) => [id, address]));
      assert.deepEqual(addresses(reversed), addresses(definition));
    }),
  );
});

/** Returns the index of the port that leads to the device, or -1 if it is not behind a port. */
function portBefore({ address }: Device): number {
  const pci = address && pciAddressFromMap(address);
  return (pci && portOf(pci)) ?? -1;
}

test('ports fill whole slots, never vanish, and come only with a device that needs one, with four spares', () => {
  fc.assert(
    fc.property(startsArb, (starts) => {
      let record: LearnedDevice[] = [];
      let before = 0;
      for (const next of starts) {
        const definition = start(next, record);
        record = recordOf(definition, record);
        const ports = record.filter(isPort).length;
        const used = next.interfaces.length + next.disks.filter(({ disk }) => disk?.bus === 'virtio').length;
        const needed = 1 + Math.max(...definition.devices.map(portBefore));
        assert.equal(ports % 8, 0);
        if (before > 0 && needed <= before) assert.equal(ports, before);
        else assert.ok(ports > before && ports >= Math.min(32, Math.max(needed, used + 4)));
        before = ports;
      }
    }),
  );
});
