import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { MAX_FREED } from '#api/virtual-machine-identity/kind.ts';
import { freedPlacesAfter } from '#controllers/device-map/freed-places.ts';

const at = (bus: string) => ({ type: 'pci', bus });
const disk = (name: string, bus?: string): LearnedDevice => ({
  id: `disk-${name}`,
  type: 'disk',
  device: 'disk',
  name,
  ...(bus === undefined ? {} : { address: at(bus) }),
});
const port: LearnedDevice = { id: 'rp0', type: 'controller', device: 'pcie-root-port', address: at('0x00') };
const q35 = { type: 'pc-q35-7.2' };
const pc = { type: 'pc-i440fx-7.2' };

const cases: Record<
  string,
  [known: Parameters<typeof freedPlacesAfter>[0], next: Parameters<typeof freedPlacesAfter>[1], string[]]
> = {
  'unchanged rows free no place': [{ devices: [disk('a', '1')] }, { devices: [disk('a', '1')] }, []],
  'a detached disk frees its place': [{ devices: [disk('a', '1')] }, { devices: [] }, ['disk-a']],
  'a disk that releases its address frees its place': [
    { devices: [disk('a', '1')] },
    { devices: [disk('a')] },
    ['disk-a'],
  ],
  'a freed place stays freed': [{ devices: [], freed: [disk('a', '1')] }, { devices: [disk('b', '2')] }, ['disk-a']],
  'a freed place is used again when its device returns': [
    { devices: [], freed: [disk('a', '1')] },
    { devices: [disk('a', '1')] },
    [],
  ],
  'a device that was removed twice is listed once, with its last place': [
    { devices: [disk('a', '2')], freed: [disk('a', '1'), disk('b', '3')] },
    { devices: [] },
    ['disk-b', 'disk-a'],
  ],
  'a device without a place frees none': [{ devices: [disk('a')] }, { devices: [] }, []],
  'a device of the machine frees no place': [{ devices: [port] }, { devices: [] }, []],
  'another chipset drops the freed places': [
    { machine: q35, devices: [disk('a', '1')], freed: [disk('b', '2')] },
    { machine: pc, devices: [] },
    [],
  ],
  'another version of the same chipset keeps the freed places': [
    { machine: q35, devices: [disk('a', '1')] },
    { machine: { type: 'pc-q35-6.2' }, devices: [] },
    ['disk-a'],
  ],
};

for (const [sentence, [known, next, want]] of Object.entries(cases)) {
  test(sentence, () =>
    assert.deepEqual(
      freedPlacesAfter(known, next).map(({ id }) => id),
      want,
    ),
  );
}

test('the oldest places are dropped first', () => {
  const devices = Array.from({ length: MAX_FREED + 2 }, (_, n) => disk(`d${n}`, String(n)));
  const freed = freedPlacesAfter({ devices }, { devices: [] });
  assert.deepEqual([freed.length, freed[0]?.id], [MAX_FREED, 'disk-d2']);
});
