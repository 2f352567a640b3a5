/** A VM is started again and again, its devices coming, going and changing places in the spec: none of them ever moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

interface Start {
  readonly disks: readonly Disk[];
  readonly interfaces: readonly Interface[];
}

/**
 * The bus is part of the name: a disk that changes its bus is another device to the guest. Few enough names that places
 * never run out over a life, which is when those of devices that are gone may be taken.
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
const livesArb = fc.array(startArb, { minLength: 2, maxLength: 6 });

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

/** The record after a start: what ran, and what ran before and is gone from the spec. */
function recordOf(definition: DomainDefinition, before: readonly LearnedDevice[]): LearnedDevice[] {
  const learned = learnedFrom(definition);
  const ids = new Set(learned.map(({ id }) => id));
  return [...learned, ...before.filter(({ id }) => !ids.has(id))];
}

const isPort = ({ device }: LearnedDevice) => device === 'pcie-root-port';

test('a device has the same address at every start', () => {
  fc.assert(
    fc.property(livesArb, (starts) => {
      const first = new Map<string, unknown>();
      let record: LearnedDevice[] = [];
      for (const wish of starts) {
        const definition = start(wish, record);
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
    fc.property(livesArb, (starts) => {
      let record: LearnedDevice[] = [];
      for (const wish of starts) {
        const definition = start(wish, record);
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

test('the same wish on the same record gives the same guest, in whatever order it is written once it ran', () => {
  fc.assert(
    fc.property(startArb, startArb, (before, wish) => {
      const record = recordOf(start(before, []), []);
      const definition = start(wish, record);
      assert.deepEqual(start(wish, record), definition);
      const after = recordOf(definition, record);
      const turned = start({ disks: wish.disks.toReversed(), interfaces: wish.interfaces.toReversed() }, after);
      const addresses = ({ devices }: DomainDefinition) =>
        Object.fromEntries(devices.map(({ id, address }) => [id, address]));
      assert.deepEqual(addresses(turned), addresses(definition));
    }),
  );
});

test('ports come in whole slots, never vanish, and four are empty', () => {
  fc.assert(
    fc.property(livesArb, (starts) => {
      let record: LearnedDevice[] = [];
      let before = 0;
      for (const wish of starts) {
        const definition = start(wish, record);
        record = recordOf(definition, record);
        const ports = record.filter(isPort).length;
        const used = wish.interfaces.length + wish.disks.filter(({ disk }) => disk?.bus === 'virtio').length;
        assert.equal(ports % 8, 0);
        assert.ok(ports >= before && ports >= Math.min(32, used + 4));
        before = ports;
      }
    }),
  );
});
