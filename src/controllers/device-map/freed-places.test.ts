import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/learned-device.ts';
import { MAX_FREED } from '#api/virtual-machine-identity/kind.ts';
import { freedAfter } from '#controllers/device-map/freed-places.ts';

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
  [known: Parameters<typeof freedAfter>[0], next: Parameters<typeof freedAfter>[1], string[]]
> = {
  'nothing goes, nothing is freed': [{ devices: [disk('a', '1')] }, { devices: [disk('a', '1')] }, []],
  'a disk that is detached frees its place': [{ devices: [disk('a', '1')] }, { devices: [] }, ['disk-a']],
  'so does one that only releases it': [{ devices: [disk('a', '1')] }, { devices: [disk('a')] }, ['disk-a']],
  'what was freed stays so': [{ devices: [], freed: [disk('a', '1')] }, { devices: [disk('b', '2')] }, ['disk-a']],
  'until it comes back': [{ devices: [], freed: [disk('a', '1')] }, { devices: [disk('a', '1')] }, []],
  'one that went twice counts once, with its last place': [
    { devices: [disk('a', '2')], freed: [disk('a', '1'), disk('b', '3')] },
    { devices: [] },
    ['disk-b', 'disk-a'],
  ],
  'what never had a place frees none': [{ devices: [disk('a')] }, { devices: [] }, []],
  'hardware that came with the machine frees none': [{ devices: [port] }, { devices: [] }, []],
  'another chipset has other places': [
    { machine: q35, devices: [disk('a', '1')], freed: [disk('b', '2')] },
    { machine: pc, devices: [] },
    [],
  ],
  'another version of the same has not': [
    { machine: q35, devices: [disk('a', '1')] },
    { machine: { type: 'pc-q35-6.2' }, devices: [] },
    ['disk-a'],
  ],
};

for (const [sentence, [known, next, want]] of Object.entries(cases)) {
  test(sentence, () =>
    assert.deepEqual(
      freedAfter(known, next).map(({ id }) => id),
      want,
    ),
  );
}

test('the oldest are forgotten first', () => {
  const devices = Array.from({ length: MAX_FREED + 2 }, (_, n) => disk(`d${n}`, String(n)));
  const freed = freedAfter({ devices }, { devices: [] });
  assert.deepEqual([freed.length, freed[0]?.id], [MAX_FREED, 'disk-d2']);
});
