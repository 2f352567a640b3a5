import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { HOST_CODES, HOST_VERBS } from '#api/host-api.ts';
import { aVm, startHostScene, VM_ID } from '#node/host-api/testing/host-scene.ts';

const CODES = new Set<number>(Object.values(HOST_CODES).map(({ code }) => code));

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom('', '0', 'true', 'virtio', 'ide', 'fdc', 'a.img', '../x', 'pv', '__proto__', 'constructor', VM_ID),
);
const someOf = (keys: readonly string[], values = anything) => fc.dictionary(fc.constantFrom(...keys), values);
const words = (...list: string[]) => fc.oneof(fc.constantFrom(...list), anything);

const device = fc
  .tuple(
    someOf([
      ...['iface', 'index', 'path', 'address', 'bootOrder', 'specParams', 'deviceId', 'readonly', 'optional', 'shared'],
      ...[
        'poolID',
        'GUID',
        'UUID',
        'format',
        'nicModel',
        'macAddr',
        'network',
        'model',
        'managed',
        'name',
        '__proto__',
      ],
    ]),
    words('disk', 'interface', 'controller', 'video', 'balloon', 'tpm', 'sound', '__proto__', 'constructor'),
    words('disk', 'cdrom', 'floppy', 'lun', 'bridge', 'usb', 'virtio-scsi', 'vga', 'ich6', 'constructor'),
  )
  .map(([rest, type, kind]) => ({ ...rest, type, device: kind }));

const parameters = fc
  .tuple(
    someOf([
      ...['vmName', 'memSize', 'smp', 'emulatedMachine', 'boot', 'custom', 'hash', 'kernel', 'uuid', 'cpuType'],
      ...['drives', 'cdrom', 'floppy', 'macAddr', 'nicModel', 'bridge', 'hda', 'spiceMonitors', 'vmList', 'vmId'],
    ]),
    fc.record({ devices: fc.oneof(fc.array(device, { maxLength: 5 }), anything) }, { requiredKeys: [] }),
    fc.record({ drive: fc.oneof(device, anything), nic: fc.oneof(device, anything) }, { requiredKeys: [] }),
    fc.boolean(),
  )
  .map(([rest, devices, plugged, isComplete]) => ({ ...(isComplete ? aVm : {}), ...rest, ...devices, ...plugged }));

test('any parameters get a known code, and never the code for an internal error', async (t) => {
  const scene = await startHostScene(t);
  scene.image('a.img');
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...HOST_VERBS), parameters, fc.boolean(), async (verb, sent, isRunning) => {
      if (isRunning) await scene.call('create', { ...aVm, devices: [] });
      const { status } = await scene.call(verb, sent);
      assert.ok(CODES.has(status.code), JSON.stringify(status));
      if (status.code === HOST_CODES.unexpected.code)
        assert.match(status.message, /: vmList: .*; expected a list of ids$/);
      for (const { id } of scene.hypervisor().list()) await scene.call('destroy', { vmId: id });
      assert.deepEqual(scene.hypervisor().list(), []);
    }),
    { numRuns: 300 },
  );
});
