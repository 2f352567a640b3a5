import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostDeviceOf } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { listRequest, readListAnswer } from '#controllers/device-map/host-reader.ts';
import { readingOf } from '#controllers/device-map/reading.ts';

const done = { code: 0, message: 'Done' };
const answer = (value: unknown) => Buffer.from(JSON.stringify(value));
const listed = (...vmList: unknown[]) => readListAnswer(answer({ status: done, vmList }));

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
  devices: [hostDeviceOf(DISK)],
};

test('a device goes over the wire and comes back as it was', () => {
  const [vm] = listed(VM);
  assert.deepEqual(readingOf(vm), {
    vmId: 'vmi-1',
    machine: 'pc-q35-7.2',
    hash: 'h1',
    revision: 7,
    devices: [DISK],
    leftOut: 0,
  });
});

test('the request names the VMs and wants everything of them', () => {
  assert.deepEqual(JSON.parse(listRequest(['a', 'b']).toString()), { fullStatus: true, vmList: ['a', 'b'] });
});

test('devices without id, type or device are left out and counted; the others are taken', () => {
  const devices = [{ type: 'disk', device: 'disk' }, { deviceId: 'x', device: 'disk' }, 7, hostDeviceOf(DISK)];
  const reading = readingOf(listed({ ...VM, devices })[0]);
  assert.deepEqual(reading?.devices, [DISK]);
  assert.equal(reading?.leftOut, 3);
});

const unread: Record<string, unknown> = {
  'a VM without a hash': { ...VM, hash: undefined },
  'a VM with an empty hash': { ...VM, hash: '' },
  'a VM with a hash that is no text': { ...VM, hash: 5 },
  'a VM with a hash without end': { ...VM, hash: 'h'.repeat(257) },
  'a VM without devices': { ...VM, devices: undefined },
  'a VM with more devices than a guest has': { ...VM, devices: Array.from({ length: 1025 }, () => ({})) },
  'a VM in no known state': { ...VM, status: 'Flying' },
  'a VM without an id': { ...VM, vmId: '' },
  'a VM of which only the id is told': 'vmi-1',
};
for (const [name, vm] of Object.entries(unread)) {
  test(`nothing is learned from ${name}`, () => assert.equal(readingOf(listed(vm)[0]), undefined));
}

const addresses: Record<string, { told: unknown; want: unknown }> = {
  'an empty text is unknown': { told: '', want: undefined },
  'an empty map stays one': { told: {}, want: {} },
  'numbers are no address': { told: { bus: 1 }, want: undefined },
  'a list is no address': { told: ['pci'], want: undefined },
  'long texts are no address': { told: { bus: 'x'.repeat(65) }, want: undefined },
  'many fields are no address': {
    told: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [n, ''])),
    want: undefined,
  },
};
for (const [name, { told, want }] of Object.entries(addresses)) {
  test(`address: ${name}`, () => {
    const [vm] = listed({ ...VM, devices: [{ ...hostDeviceOf(DISK), address: told }] });
    assert.deepEqual(readingOf(vm)?.devices[0]?.address, want);
  });
}

test('what is no parameter of a device is dropped, and prototype keys are inert', () => {
  const devices = `[{"type":"a","device":"b","deviceId":"c","specParams":{"x":1}},
    {"type":"a","device":"b","deviceId":"d","address":{"__proto__":"x"}}]`;
  const text = JSON.stringify({ status: done, vmList: [{ ...VM, devices: [] }] }).replace(
    '"devices":[]',
    `"devices":${devices}`,
  );
  const [first, second] = readingOf(readListAnswer(Buffer.from(text))[0])?.devices ?? [];
  assert.equal(first?.specParams, undefined);
  assert.equal(({} as Record<string, unknown>)['x'], undefined);
  assert.ok(Object.hasOwn(second?.address ?? {}, '__proto__'));
});

const nested = (depth: number): object => (depth === 0 ? {} : { in: nested(depth - 1) });
const params: Record<string, { told: object; want?: object }> = {
  'maps in maps': { told: nested(3), want: nested(3) },
  'maps in maps without end': { told: nested(4) },
  'a long text': { told: { x: 'y'.repeat(16 * 1024) } },
};
for (const [name, { told, want }] of Object.entries(params)) {
  test(`parameters: ${name}`, () => {
    const [vm] = listed({ ...VM, devices: [{ ...hostDeviceOf(DISK), specParams: told }] });
    assert.deepEqual(readingOf(vm)?.devices[0]?.specParams, want);
  });
}

const refused: Record<string, { bytes: Buffer; message: RegExp }> = {
  'no JSON': { bytes: Buffer.from('<html>'), message: /JSON/ },
  'no status': { bytes: answer({ vmList: [] }), message: /no status/ },
  'no list': { bytes: answer({ status: done }), message: /no vmList/ },
  'a refusal': { bytes: answer({ status: { code: 16, message: 'Unexpected exception' } }), message: /16 Unexpected/ },
};
for (const [name, { bytes, message }] of Object.entries(refused)) {
  test(`an answer that is ${name} fails the call`, () => assert.throws(() => readListAnswer(bytes), { message }));
}
