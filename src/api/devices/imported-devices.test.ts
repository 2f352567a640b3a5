import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseImportedDevices, type ImportedDevices } from '#api/devices/imported-devices.ts';

const pci = (slot: string, more: object = {}) => ({
  type: 'pci',
  domain: '0x0000',
  bus: '0x00',
  slot,
  function: '0x0',
  ...more,
});
const drive = (unit: string) => ({ type: 'drive', controller: '0', bus: '0', target: '0', unit });
const aDevice = (id: string, fields: object = {}) => ({ id, type: 'disk', device: 'disk', ...fields });

const WHOLE = {
  from: 'OVF of oVirt 4.1',
  machine: 'pc-i440fx-2.9',
  devices: [
    {
      id: 'disk-root',
      type: 'disk',
      device: 'disk',
      name: 'root',
      address: pci('0x05'),
      bootOrder: 1,
      managed: true,
      plugged: true,
      readonly: false,
      specParams: { bus: 'virtio', deep: { er: { still: 'x' } } },
    },
    aDevice('nic-lan', { type: 'interface', address: pci('0x03'), plugged: false }),
    aDevice('video0', { type: 'video', address: {} }),
    aDevice('video1', { type: 'video', address: {} }),
  ],
} satisfies ImportedDevices;

const good: Record<string, unknown> = {
  'all fields': WHOLE,
  'an empty list of devices': { from: 'libvirt', devices: [] },
  'the same unit on different buses': {
    from: 'x',
    devices: [
      aDevice('a', { address: drive('0'), specParams: { bus: 'ide' } }),
      aDevice('b', { address: drive('0'), specParams: { bus: 'scsi' } }),
      aDevice('c', { device: 'floppy', address: drive('0') }),
    ],
  },
  'the maximum number of devices': { from: 'x', devices: Array.from({ length: 200 }, (_, i) => aDevice(`d${i}`)) },
};
for (const [name, value] of Object.entries(good)) {
  test(`accepts ${name}`, () => assert.deepEqual(parseImportedDevices(JSON.stringify(value)), value));
}

const devices = (...list: unknown[]) => JSON.stringify({ from: 'x', devices: list });
let deep: object = { a: 'x' };
for (let i = 0; i < 20; i++) deep = { a: deep };

const bad: Record<string, { text: string; fault: string }> = {
  'invalid JSON': { text: '{', fault: 'is not JSON' },
  'a list': { text: '[]', fault: 'is not an object' },
  null: { text: 'null', fault: 'is not an object' },
  'a missing origin': { text: '{"devices":[]}', fault: 'from is missing' },
  'an origin of two lines': {
    text: JSON.stringify({ from: 'a\nb', devices: [] }),
    fault: 'from is not a single line of at most 256 characters',
  },
  'missing devices': { text: '{"from":"x"}', fault: 'devices is missing' },
  'devices that are not a list': { text: '{"from":"x","devices":{}}', fault: 'devices is not a list' },
  'a machine type with options': {
    text: '{"from":"x","machine":"q35,smm=off","devices":[]}',
    fault: 'machine is not a valid machine type',
  },
  'an unknown field': {
    text: '{"from":"x","devices":[],"uuid":"y"}',
    fault: '"uuid" is not a known field',
  },
  'a device that is not an object': { text: devices('disk'), fault: 'devices[0] is not an object' },
  'a device without an id': { text: devices({ type: 'disk', device: 'disk' }), fault: 'devices[0].id is missing' },
  'an invalid id': {
    text: devices(aDevice('a,b')),
    fault: 'devices[0].id is not a valid id: it must consist of letters, digits, ".", "_", ":" and "-"',
  },
  'a device with an empty type': { text: devices(aDevice('a', { type: '' })), fault: 'devices[0].type is empty' },
  'a device with an unknown field': {
    text: devices(aDevice('a'), aDevice('b', { alias: 'ua-b' })),
    fault: 'devices[1]."alias" is not a known field',
  },
  'an address that is a string': {
    text: devices(aDevice('a', { address: '0000:05:00.0' })),
    fault: 'devices[0].address is not a map',
  },
  'an address with a number': {
    text: devices(aDevice('a', { address: { type: 'pci', slot: 5 } })),
    fault: 'devices[0].address.slot is not a string',
  },
  'an address with a very long value': {
    text: devices(aDevice('a', { address: { type: 'x'.repeat(257) } })),
    fault: 'devices[0].address.type is not a single line of at most 256 characters',
  },
  'an invalid boot order': {
    text: devices(aDevice('a', { bootOrder: 0.5 })),
    fault: 'devices[0].bootOrder is not a valid boot order',
  },
  'a flag that is a string': {
    text: devices(aDevice('a', { plugged: 'true' })),
    fault: 'devices[0].plugged is neither true nor false',
  },
  'parameters that are a list': {
    text: devices(aDevice('a', { specParams: { a: [] } })),
    fault: 'devices[0].specParams.a is not a string',
  },
  'parameters that are nested too deeply': {
    text: devices(aDevice('a', { specParams: deep })),
    fault: `devices[0].specParams${'.a'.repeat(9)} is nested too deeply`,
  },
  'a prototype key': {
    text: '{"from":"x","devices":[{"id":"a","type":"t","device":"d","specParams":{"__proto__":{"b":"c"}}}]}',
    fault: 'devices[0].specParams has an invalid key: "__proto__"',
  },
  'two devices with the same id': {
    text: devices(aDevice('a'), aDevice('b'), aDevice('a')),
    fault: 'two devices have the id a',
  },
  'two devices with the same address': {
    text: devices(
      aDevice('a', { address: pci('0x05') }),
      aDevice('b', { address: pci('0x5', { domain: '0', multifunction: 'on' }) }),
    ),
    fault: 'the devices a and b have the same address: pci 0:0:5:0',
  },
  'two devices with the same unit of the same bus': {
    text: devices(
      aDevice('a', { address: drive('1'), specParams: { bus: 'scsi' } }),
      aDevice('b', { address: drive('0x1'), specParams: { bus: 'scsi' } }),
    ),
    fault: 'the devices a and b have the same address: drive scsi bus=0 controller=0 target=0 unit=1',
  },
  'too many devices': {
    text: devices(...Array.from({ length: 201 }, (_, i) => aDevice(`d${i}`))),
    fault: 'devices has 201 entries, more than 200',
  },
  'too many bytes': { text: `"${'x'.repeat(102_400)}"`, fault: 'has 102402 bytes, more than 102400' },
  'deeply nested JSON': { text: '['.repeat(100_000), fault: 'is not JSON' },
};
for (const [name, { text, fault }] of Object.entries(bad)) {
  test(`refuses ${name}`, () => assert.deepEqual(parseImportedDevices(text), { fault }));
}
