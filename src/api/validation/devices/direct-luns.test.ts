/** Tests which block devices of nodes VMs may use, and VMs whose devices are no longer allowed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachineInstance } from '#api/validation/kinds/validate-virtual-machine-instance.ts';
import { validateVirtualMachine } from '#api/validation/kinds/validate-virtual-machine.ts';

const refusalOf = (field: string, name: string) =>
  `${field}: Forbidden: VMs may not use the block device "${name}"; a cluster administrator can allow it in spec.configuration.directLuns of the KubeVirt object selfsame-system/kubevirt`;
const kubevirt = (directLuns: string[]) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'KubeVirt',
  metadata: { namespace: 'selfsame-system', name: 'kubevirt' },
  spec: { configuration: { directLuns } },
});
/** Volumes by name; those without a LUN are empty disks. */
type Luns = Readonly<Record<string, { readonly guid?: string; readonly uuid?: string } | undefined>>;
const specOf = (luns: Luns, domain: object = {}) => {
  const names = Object.keys(luns);
  const content = (name: string) =>
    luns[name] === undefined ? { emptyDisk: { capacity: '1Gi' } } : { directLun: luns[name] };
  return {
    domain: { ...domain, devices: { disks: names.map((name) => ({ name, disk: { bus: 'virtio' } })) } },
    volumes: names.map((name) => ({ name, ...content(name) })),
  };
};
const vmOf = (luns: Luns, domain?: object) => aVm({ spec: { template: { spec: specOf(luns, domain) } } });
const texts = (errors: readonly { field: string; message: string }[]) =>
  errors.map(({ field, message }) => `${field}: ${message}`);

interface Case {
  readonly allowed?: string[];
  readonly luns: Luns;
  readonly old?: Luns;
  readonly domain?: object;
  readonly want?: string[];
}

const GUID = '3600140580e1c0001';
const VOLUMES = 'spec.template.spec.volumes';

const cases: Record<string, Case> = {
  'refuses all devices by default': {
    luns: { a: { guid: GUID } },
    want: [refusalOf(`${VOLUMES}[0].directLun.guid`, GUID)],
  },
  'allows a device in the list': { allowed: [GUID], luns: { a: { guid: GUID } } },
  'allows a device that matches a glob of the list': { allowed: ['x', '36001405*'], luns: { a: { guid: GUID } } },
  'refuses a device of which the list has only a part': {
    allowed: ['36001405'],
    luns: { a: { guid: GUID } },
    want: [refusalOf(`${VOLUMES}[0].directLun.guid`, GUID)],
  },
  'a malformed glob allows nothing': {
    allowed: ['[', '36001405['],
    luns: { a: { guid: GUID } },
    want: [refusalOf(`${VOLUMES}[0].directLun.guid`, GUID)],
  },
  'checks uuids as well': {
    allowed: ['0b5c-*'],
    luns: { a: { uuid: '0b5c-11' }, b: undefined, c: { uuid: '0b5d-11' } },
    want: [refusalOf(`${VOLUMES}[2].directLun.uuid`, '0b5d-11')],
  },
  'allows other changes of a VM with a device that is no longer allowed': {
    luns: { a: { guid: GUID } },
    old: { a: { guid: GUID } },
    domain: { cpu: { cores: 4 } },
  },
  'allows the removal of an earlier disk of such a VM': {
    luns: { b: { guid: GUID } },
    old: { a: undefined, b: { guid: GUID } },
  },
  'refuses another device for such a VM': {
    luns: { a: { guid: 'y' } },
    old: { a: { guid: GUID } },
    want: [refusalOf(`${VOLUMES}[0].directLun.guid`, 'y')],
  },
  'refuses a second device for such a VM': {
    luns: { a: { guid: GUID }, b: { guid: 'y' } },
    old: { a: { guid: GUID } },
    want: [refusalOf(`${VOLUMES}[1].directLun.guid`, 'y')],
  },
};

for (const [name, { allowed = [], luns, old, domain, want = [] }] of Object.entries(cases)) {
  test(name, () => {
    const configuration = configurationOf(kubevirt(allowed));
    const context = { configuration, ...(old === undefined ? {} : { old: vmOf(old) }) };
    assert.deepEqual(texts(validateVirtualMachine(vmOf(luns, domain), context)), want);
  });
}

test('checks instances of users, but not those of stored VMs', () => {
  const configuration = configurationOf(undefined);
  const vmi = aVmi({ spec: specOf({ a: { guid: GUID } }) });
  const errors = (trusted: boolean) => texts(validateVirtualMachineInstance(vmi, { configuration, trusted }));
  assert.deepEqual(errors(false), [refusalOf('spec.volumes[0].directLun.guid', GUID)]);
  assert.deepEqual(errors(true), []);
});
