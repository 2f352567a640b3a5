/** Tests that unsupported fields are refused with their full path and an alternative. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVm } from '#api/validation/testing/valid-objects.ts';
import { checkUnknownFields } from '#api/validation/unknown-fields.ts';
import { vmSpec } from '#api/virtual-machine/schema.ts';

const NOT_YET = 'Forbidden: is not supported yet';

const NO_MODE =
  'Forbidden: is not supported: the files are on a read-only disk, and the guest chooses the mode when it mounts the disk';

/** Merge patches of a VM's spec, and the errors. */
const cases: Record<string, { spec: unknown; want: string[] }> = {
  'accepts a valid spec': { spec: {}, want: [] },
  'ignores null': { spec: { template: { metadata: { creationTimestamp: null } } }, want: [] },
  'refuses unknown fields in scheduling constraints': {
    spec: { template: { spec: { affinity: { podAffinty: {} }, tolerations: [{ operator: 'Exists', for: 'ever' }] } } },
    want: [
      'spec.template.spec.affinity.podAffinty: Forbidden: unknown field',
      'spec.template.spec.tolerations[0].for: Forbidden: unknown field',
    ],
  },
  'refuses an unsupported field of a VM': {
    spec: { instancetype: { name: 'u1.small' } },
    want: ['spec.instancetype: Forbidden: is not supported yet; set cpu and memory in spec.template.spec.domain'],
  },
  'refuses an unsupported device': {
    spec: { template: { spec: { domain: { devices: { gpus: [{ name: 'a' }] } } } } },
    want: [
      'spec.template.spec.domain.devices.gpus: Forbidden: is not supported: a device of one node does not exist on another, so the VM would not stay the same; use an emulated device, or a directLun volume for a disk',
    ],
  },
  'refuses a container disk and names alternatives': {
    spec: { template: { spec: { volumes: [{ name: 'root', containerDisk: { image: 'x' } }] } } },
    want: [
      'spec.template.spec.volumes[0].containerDisk: Forbidden: is not supported: disks cannot be container images. Use one of persistentVolumeClaim, ephemeral, emptyDisk, hostDisk, cloudInitNoCloud, configMap, secret, serviceAccount and downwardAPI, or firmware.kernelBoot with the image selfsame/guest for a test guest',
    ],
  },
  'refuses modes and selected items of file volumes': {
    spec: {
      template: {
        spec: {
          volumes: [
            { name: 'a', configMap: { name: 'a', items: [{ key: 'k', path: 'p' }], defaultMode: 256 } },
            { name: 'b', secret: { secretName: 'b', items: [] } },
            {
              name: 'c',
              downwardAPI: {
                items: [],
                fields: [{ path: 'm', mode: 256, resourceFieldRef: { resource: 'limits.memory' } }],
              },
            },
          ],
        },
      },
    },
    want: [
      'spec.template.spec.volumes[0].configMap.items: Forbidden: is not supported: there is one file for each key of the ConfigMap; create an object with only the keys that the guest needs',
      `spec.template.spec.volumes[0].configMap.defaultMode: ${NO_MODE}`,
      'spec.template.spec.volumes[1].secret.items: Forbidden: is not supported: there is one file for each key of the Secret; create an object with only the keys that the guest needs',
      'spec.template.spec.volumes[2].downwardAPI.items: Forbidden: is not supported: use fields',
      'spec.template.spec.volumes[2].downwardAPI.fields[0].resourceFieldRef: Forbidden: is not supported: guests see their own CPUs and memory; use fieldRef for metadata',
      `spec.template.spec.volumes[2].downwardAPI.fields[0].mode: ${NO_MODE}`,
    ],
  },
  'names the index of a list item': {
    spec: { template: { spec: { domain: { devices: { disks: [{ name: 'a' }, { name: 'b', io: 'native' }] } } } } },
    want: [`spec.template.spec.domain.devices.disks[1].io: ${NOT_YET}`],
  },
  'refuses several misspelled fields': {
    spec: { runStrategie: 'Always', template: { spec: { domain: { cpus: 1, cpu: { core: 2 } } } } },
    want: [
      'spec.template.spec.domain.cpu.core: Forbidden: unknown field',
      'spec.template.spec.domain.cpus: Forbidden: unknown field',
      'spec.runStrategie: Forbidden: unknown field',
    ],
  },
  'refuses names of Object.prototype': {
    spec: { template: { spec: { domain: { devices: { constructor: {}, toString: 1 } } } } },
    want: [
      'spec.template.spec.domain.devices.constructor: Forbidden: unknown field',
      'spec.template.spec.domain.devices.toString: Forbidden: unknown field',
    ],
  },
  'refuses invalid quantities': {
    spec: { template: { spec: { domain: { memory: { guest: '1 GB' }, resources: { limits: { cpu: 'x' } } } } } },
    want: [
      `spec.template.spec.domain.memory.guest: Invalid value: "1 GB": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
      `spec.template.spec.domain.resources.limits[cpu]: Invalid value: "x": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
    ],
  },
};

for (const [name, { spec, want }] of Object.entries(cases)) {
  test(name, () => {
    const errors = checkUnknownFields(vmSpec, aVm({ spec }).spec, 'spec', 'spec.template.');
    assert.deepEqual(errors.map(({ field, message }) => `${field}: ${message}`).toSorted(), want.toSorted());
  });
}

test('returns at most 50 errors', () => {
  const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`x${i}`, 1]));
  assert.equal(checkUnknownFields(vmSpec, aVm({ spec: fields }).spec, 'spec', 'spec.template.').length, 50);
});
