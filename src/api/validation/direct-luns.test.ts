/** Which block devices of nodes may be named, by whom, and what of a list that is narrower now. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachineInstance } from '#api/validation/validate-virtual-machine-instance.ts';
import { validateVirtualMachine } from '#api/validation/validate-virtual-machine.ts';

const refused = (field: string, name: string) =>
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
  'none unless set': { luns: { a: { guid: GUID } }, want: [refused(`${VOLUMES}[0].directLun.guid`, GUID)] },
  'one that the list names': { allowed: [GUID], luns: { a: { guid: GUID } } },
  'one that a glob of the list fits': { allowed: ['x', '36001405*'], luns: { a: { guid: GUID } } },
  'a part of a name is not enough': {
    allowed: ['36001405'],
    luns: { a: { guid: GUID } },
    want: [refused(`${VOLUMES}[0].directLun.guid`, GUID)],
  },
  'a glob that cannot be read allows nothing': {
    allowed: ['[', '36001405['],
    luns: { a: { guid: GUID } },
    want: [refused(`${VOLUMES}[0].directLun.guid`, GUID)],
  },
  'uuids, too': {
    allowed: ['0b5c-*'],
    luns: { a: { uuid: '0b5c-11' }, b: undefined, c: { uuid: '0b5d-11' } },
    want: [refused(`${VOLUMES}[2].directLun.uuid`, '0b5d-11')],
  },
  'a VM that is stored with it is changed elsewhere': {
    luns: { a: { guid: GUID } },
    old: { a: { guid: GUID } },
    domain: { cpu: { cores: 4 } },
  },
  'a VM that is stored with it loses another disk, which stands before it': {
    luns: { b: { guid: GUID } },
    old: { a: undefined, b: { guid: GUID } },
  },
  'a VM that is stored with it gets another one': {
    luns: { a: { guid: 'y' } },
    old: { a: { guid: GUID } },
    want: [refused(`${VOLUMES}[0].directLun.guid`, 'y')],
  },
  'a VM that is stored with it gets a second one': {
    luns: { a: { guid: GUID }, b: { guid: 'y' } },
    old: { a: { guid: GUID } },
    want: [refused(`${VOLUMES}[1].directLun.guid`, 'y')],
  },
};

for (const [name, { allowed = [], luns, old, domain, want = [] }] of Object.entries(cases)) {
  test(name, () => {
    const configuration = configurationOf(kubevirt(allowed));
    const context = { configuration, ...(old === undefined ? {} : { old: vmOf(old) }) };
    assert.deepEqual(texts(validateVirtualMachine(vmOf(luns, domain), context)), want);
  });
}

test('an instance of people is asked as a VM is; one that a stored VM starts has it', () => {
  const configuration = configurationOf(undefined);
  const vmi = aVmi({ spec: specOf({ a: { guid: GUID } }) });
  const errors = (trusted: boolean) => texts(validateVirtualMachineInstance(vmi, { configuration, trusted }));
  assert.deepEqual(errors(false), [refused('spec.volumes[0].directLun.guid', GUID)]);
  assert.deepEqual(errors(true), []);
});
