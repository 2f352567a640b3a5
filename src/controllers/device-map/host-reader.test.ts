import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHostDevice } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { buildListRequest, parseListResponse } from '#controllers/device-map/host-reader.ts';
import { toDeviceReading } from '#controllers/device-map/reading.ts';

const done = { code: 0, message: 'Done' };
const answer = (value: unknown) => Buffer.from(JSON.stringify(value));
const parseVms = (...vmList: unknown[]) => parseListResponse(answer({ status: done, vmList }));

const DISK: LearnedDevice = {
  id: 'disk-a',
  type: 'disk',
  device: 'disk',
  name: 'a',
  address: { type: 'pci', bus: '0x01' },
  bootOrder: 1,
  managed: true,
  readonly: true,
  specParams: { model: 'x', nested: { y: 'z' } },
};
const VM = {
  vmId: 'vmi-1',
  vmName: 'ns/db',
  status: 'Up',
  emulatedMachine: 'pc-q35-7.2',
  memSize: 128,
  smp: '1',
  uuid: 'u',
  hash: 'h1',
  deviceRevision: 7,
  devices: [toHostDevice(DISK)],
};

test('a device is the same after it was sent and parsed', () => {
  const [vm] = parseVms(VM);
  assert.deepEqual(toDeviceReading(vm), {
    vmId: 'vmi-1',
    machine: 'pc-q35-7.2',
    hash: 'h1',
    revision: 7,
    devices: [DISK],
    ignored: 0,
  });
});

test('the request names the VMs and asks for their full status', () => {
  assert.deepEqual(JSON.parse(buildListRequest(['a', 'b']).toString()), { fullStatus: true, vmList: ['a', 'b'] });
});

test('devices without id, type or device are ignored and counted; others are parsed', () => {
  const devices = [{ type: 'disk', device: 'disk' }, { deviceId: 'x', device: 'disk' }, 7, toHostDevice(DISK)];
  const reading = toDeviceReading(parseVms({ ...VM, devices })[0]);
  assert.deepEqual(reading?.devices, [DISK]);
  assert.equal(reading?.ignored, 3);
});

const unread: Record<string, unknown> = {
  'a VM without a hash': { ...VM, hash: undefined },
  'a VM with an empty hash': { ...VM, hash: '' },
  'a VM with a hash that is not a string': { ...VM, hash: 5 },
  'a VM with a hash that is too long': { ...VM, hash: 'h'.repeat(257) },
  'a VM without devices': { ...VM, devices: undefined },
  'a VM with too many devices': { ...VM, devices: Array.from({ length: 1025 }, () => ({})) },
  'a VM in an unknown state': { ...VM, status: 'Flying' },
  'a VM without an id': { ...VM, vmId: '' },
  'a VM of which only the id is sent': 'vmi-1',
};
for (const [name, vm] of Object.entries(unread)) {
  test(`nothing is learned from ${name}`, () => assert.equal(toDeviceReading(parseVms(vm)[0]), undefined));
}

const addresses: Record<string, { sent: unknown; want: unknown }> = {
  'an empty string is unknown': { sent: '', want: undefined },
  'an empty map stays empty': { sent: {}, want: {} },
  'numbers are not valid': { sent: { bus: 1 }, want: undefined },
  'a list is not valid': { sent: ['pci'], want: undefined },
  'long strings are not valid': { sent: { bus: 'x'.repeat(65) }, want: undefined },
  'too many fields are not valid': {
    sent: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [n, ''])),
    want: undefined,
  },
};
for (const [name, { sent, want }] of Object.entries(addresses)) {
  test(`address: ${name}`, () => {
    const [vm] = parseVms({ ...VM, devices: [{ ...toHostDevice(DISK), address: sent }] });
    assert.deepEqual(toDeviceReading(vm)?.devices[0]?.address, want);
  });
}

test('invalid parameters of a device are dropped, and prototype keys are harmless', () => {
  const devices = `[{"type":"a","device":"b","deviceId":"c","specParams":{"x":1}},
    {"type":"a","device":"b","deviceId":"d","address":{"__proto__":"x"}}]`;
  const text = JSON.stringify({ status: done, vmList: [{ ...VM, devices: [] }] }).replace(
    '"devices":[]',
    `"devices":${devices}`,
  );
  const [first, second] = toDeviceReading(parseListResponse(Buffer.from(text))[0])?.devices ?? [];
  assert.equal(first?.specParams, undefined);
  assert.equal(({} as Record<string, unknown>)['x'], undefined);
  assert.ok(Object.hasOwn(second?.address ?? {}, '__proto__'));
});

const nestObjects = (depth: number): object => (depth === 0 ? {} : { in: nestObjects(depth - 1) });
const params: Record<string, { sent: object; want?: object }> = {
  'nested maps': { sent: nestObjects(3), want: nestObjects(3) },
  'maps that are nested too deeply': { sent: nestObjects(4) },
  'a long string': { sent: { x: 'y'.repeat(16 * 1024) } },
};
for (const [name, { sent, want }] of Object.entries(params)) {
  test(`parameters: ${name}`, () => {
    const [vm] = parseVms({ ...VM, devices: [{ ...toHostDevice(DISK), specParams: sent }] });
    assert.deepEqual(toDeviceReading(vm)?.devices[0]?.specParams, want);
  });
}

const refused: Record<string, { bytes: Buffer; message: RegExp }> = {
  'not JSON': { bytes: Buffer.from('<html>'), message: /JSON/ },
  'without a status': { bytes: answer({ vmList: [] }), message: /no status/ },
  'without a list': { bytes: answer({ status: done }), message: /no vmList/ },
  'an error of the host': {
    bytes: answer({ status: { code: 16, message: 'Unexpected exception' } }),
    message: /16 Unexpected/,
  },
};
for (const [name, { bytes, message }] of Object.entries(refused)) {
  test(`a response that is ${name} fails the call`, () => assert.throws(() => parseListResponse(bytes), { message }));
}
