import assert from 'node:assert/strict';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { test } from 'node:test';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { IdentitySpec } from '#api/virtual-machine-identity/kind.ts';
import { resolveIdentity, recordIdentity } from '#controllers/vm/identity/identity.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { aRecord, aVm, aVmi, aWorld, DELETED, UUID } from '#controllers/vm/testing/vm-world.ts';

test('the legacy uuid is the same as in KubeVirt', () => {
  const vectors = {
    test: 'feec480d-31a1-59fa-9199-a330c83aa404',
    testvm: '5a9fc181-957e-5c32-9e5a-2de5e9673531',
    testvmi: 'f8918e71-270a-598e-a2a4-1afac39e1394',
    testvm1: 'cfb867c9-fa3a-51f5-b0f5-485fd556fd68',
    'my-vm': '41256f5f-3759-54d0-9c60-26dff9079ab1',
    vm1: '133bf63e-9459-5126-9b21-b56e9b3d17b3',
    fedora: '98f07cdd-96da-5880-b6c7-1a5700b73dc4',
  };
  for (const [name, uuid] of Object.entries(vectors)) assert.equal(legacyUuid(name), uuid, name);
});

test('a derived MAC address is locally administered and depends only on the VM and the interface', () => {
  assert.match(deriveMac('vm-uid', 'a'), /^02(:[0-9a-f]{2}){5}$/);
  assert.equal(deriveMac('vm-uid', 'a'), deriveMac('vm-uid', 'a'));
  assert.notEqual(deriveMac('vm-uid', 'a'), deriveMac('vm-uid', 'b'));
  assert.notEqual(deriveMac('vm-uid', 'a'), deriveMac('other', 'a'));
});

interface Case {
  readonly template: Partial<VmiSpec>;
  readonly known?: IdentitySpec;
  readonly smbios?: { manufacturer: string };
  readonly want: IdentitySpec;
}

const noInterface = { autoattachPodInterface: false };
const nics = { interfaces: [{ name: 'a' }, { name: 'b', macAddress: 'de:ad:00:00:be:ef' }] };
const DERIVED = [{ name: 'a', macAddress: deriveMac('vm-uid', 'a') }];

const FROM_TEMPLATE = { name: 'b', macAddress: 'de:ad:00:00:be:ef', fromTemplate: true };

const cases: Record<string, Case> = {
  'the template has precedence': {
    template: { domain: { firmware: { uuid: UUID, serial: 's2' }, devices: noInterface } },
    known: { firmware: { uuid: 'old', serial: 's1' } },
    want: { firmware: { uuid: UUID, serial: 's2' } },
  },
  'the record has precedence if the template has no value': {
    template: { domain: { firmware: { uuid: '' }, devices: noInterface } },
    known: { firmware: { uuid: UUID, serial: 's1' } },
    want: { firmware: { uuid: UUID, serial: 's1' } },
  },
  'a VM without a uuid gets the legacy uuid': {
    template: { domain: { devices: noInterface } },
    want: { firmware: { uuid: legacyUuid('db') } },
  },
  'interfaces without a MAC address get a derived one': {
    template: { domain: { firmware: { uuid: UUID }, devices: nics } },
    want: { firmware: { uuid: UUID }, interfaces: [...DERIVED, FROM_TEMPLATE] },
  },
  'a recorded MAC address is kept': {
    template: { domain: { firmware: { uuid: UUID }, devices: nics } },
    known: { interfaces: [{ name: 'a', macAddress: '02:00:00:00:00:01' }] },
    want: { firmware: { uuid: UUID }, interfaces: [{ name: 'a', macAddress: '02:00:00:00:00:01' }, FROM_TEMPLATE] },
  },
  'a MAC address that was removed from the template is not kept': {
    template: { domain: { firmware: { uuid: UUID }, devices: nics } },
    known: { interfaces: [{ name: 'a', macAddress: '02:00:00:00:00:01', fromTemplate: true }] },
    want: { firmware: { uuid: UUID }, interfaces: [...DERIVED, FROM_TEMPLATE] },
  },
  'a new VM gets the manufacturer of the KubeVirt object': {
    template: { domain: { firmware: { uuid: UUID }, devices: noInterface } },
    smbios: { manufacturer: 'Acme' },
    want: { firmware: { uuid: UUID }, smbios: { manufacturer: 'Acme' } },
  },
  'a recorded VM keeps its manufacturer': {
    template: { domain: { firmware: { uuid: UUID }, devices: noInterface } },
    known: { firmware: { uuid: UUID }, smbios: { manufacturer: 'Old' } },
    smbios: { manufacturer: 'Acme' },
    want: { firmware: { uuid: UUID }, smbios: { manufacturer: 'Old' } },
  },
  'a recorded VM without a manufacturer gets none': {
    template: { domain: { firmware: { uuid: UUID }, devices: noInterface } },
    known: { firmware: { uuid: UUID } },
    smbios: { manufacturer: 'Acme' },
    want: { firmware: { uuid: UUID } },
  },
  'the interface that is attached by default has a MAC address, too': {
    template: { domain: { firmware: { uuid: UUID } } },
    want: { firmware: { uuid: UUID }, interfaces: [{ name: 'default', macAddress: deriveMac('vm-uid', 'default') }] },
  },
};

for (const [name, { template, known, smbios, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(resolveIdentity(aVm({ template }), known, { smbios }), want));
}

test('the record is created if it is missing, kept if it is complete, and otherwise patched', () => {
  const vm = aVm();
  const [create] = recordIdentity(aWorld({ vm, identity: undefined }));
  assert.ok(create?.do === 'create');
  assert.equal(create.object.metadata.name, 'db');
  assert.equal(create.object.metadata.ownerReferences?.[0]?.uid, 'vm-uid');

  assert.deepEqual(recordIdentity(aWorld({ vm, identity: aRecord(vm) })), []);

  const changed = aVm({ template: { domain: { firmware: { uuid: 'ffffffff-8ce6-44d9-9e1b-6b1a0a3b2a10' } } } });
  const [patch] = recordIdentity(aWorld({ vm: changed, identity: aRecord(vm) }));
  assert.ok(patch?.do === 'patch' && patch.uid === 'record-uid');
});

test('a record without an owner is adopted with its content', () => {
  const vm = aVm({ template: { domain: {} } });
  const orphan = { ...aRecord(vm, { ownerReferences: undefined }), spec: { firmware: { uuid: UUID } } };
  const [patch] = recordIdentity(aWorld({ vm, identity: orphan }));
  assert.ok(patch?.do === 'patch');
  const body = patch.patch.body as { metadata: { ownerReferences: { uid: string }[] }; spec: IdentitySpec };
  assert.deepEqual(
    body.metadata.ownerReferences.map(({ uid }) => uid),
    ['vm-uid'],
  );
  assert.equal(body.spec.firmware?.uuid, UUID);
});

test('a deleted record is created again from the instance', () => {
  const vm = aVm({ template: { domain: { devices: { interfaces: [{ name: 'a' }] } } } });
  const interfaces = [{ name: 'a', macAddress: '02:00:00:00:00:01' }];
  const vmi = aVmi('Running', {
    spec: { domain: { firmware: { uuid: UUID, serial: 's1' }, devices: { interfaces } } },
  });
  const [create] = recordIdentity(aWorld({ vm, vmi, identity: undefined }));
  assert.ok(create?.do === 'create');
  assert.deepEqual(create.object['spec'], { firmware: { uuid: UUID, serial: 's1' }, interfaces });
});

test('the record of another VM is not used', () => {
  const vm = aVm({ template: { domain: {} } });
  const other = aVm({ metadata: { uid: 'earlier' }, template: { domain: { firmware: { uuid: UUID } } } });
  for (const identity of [aRecord(other), aRecord(other, { ...DELETED, ownerReferences: undefined })]) {
    const [create] = recordIdentity(aWorld({ vm, identity }));
    assert.ok(create?.do === 'create');
    assert.equal((create.object['spec'] as IdentitySpec).firmware?.uuid, legacyUuid('db'));
  }
});
