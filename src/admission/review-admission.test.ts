/** Tests the webhook as a function of reviews. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reviewAdmission } from '#admission/review-admission.ts';
import type { PatchOperation } from '#admission/review.ts';
import type { AdmissionLookup } from '#admission/validate.ts';
import { aMigration, aRestore, aSnapshot, aVm, aVmi, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';
import { MIGRATION_FINALIZER, VMI_NAME_LABEL } from '#api/names.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { isRecord } from '#kube/meta.ts';

const VM = '/mutate-virtualmachines';
const VMI = '/mutate-virtualmachineinstances';
const VMIM = '/mutate-virtualmachineinstancemigrations';
const FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';
const ADMIN = 'kubernetes-admin';
const NOW = '2026-01-01T00:00:00Z';
const CONTROLLER = 'system:serviceaccount:selfsame-system:vmi-controller';

const LOOKUP: AdmissionLookup = {
  configuration: () => CONFIGURATION,
  vmsWithUuid: () => [],
  vmsWithMac: () => [],
  guestNetwork: () => undefined,
  networkAddress: () => undefined,
  restoresOf: () => Promise.resolve([]),
  protectedVms: async () => [],
  nodes: () => [],
  vmsOfClaim: () => [],
  claimsOfVm: () => [],
  pod: async () => undefined,
  instance: async () => undefined,
  activeMigrationsOf: async () => [],
};
const markForEvacuation = async () => {};

interface Request {
  readonly path: string;
  readonly object?: unknown;
  readonly oldObject?: unknown;
  readonly operation?: string;
  readonly user?: string;
  readonly lookup?: Partial<AdmissionLookup>;
}

async function ask({ path, object, oldObject, operation = 'CREATE', user = ADMIN, lookup }: Request) {
  let count = 0;
  const review = { request: { uid: 'u1', operation, userInfo: { username: user }, object, oldObject } };
  const { response } = await reviewAdmission(path, review, {
    newUuid: () => `uuid-${++count}`,
    now: () => NOW,
    markForEvacuation,
    lookup: { ...LOOKUP, ...lookup },
  });
  assert.equal(response['uid'], 'u1');
  const { patch: encoded } = response;
  const text = typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : '[]';
  return { ...response, patch: JSON.parse(text) as PatchOperation[] } as {
    allowed: boolean;
    patch: PatchOperation[];
    warnings?: string[];
    status?: { code: number; reason: string; message: string; details: { causes: unknown[] } };
  };
}

const vmFirmware = (firmware: unknown) => aVm({ spec: { template: { spec: { domain: { firmware } } } } });
const vmiFirmware = (firmware: unknown, metadata: object = {}) => aVmi({ metadata, spec: { domain: { firmware } } });
/** Has all other fields that the webhook fills in. */
const vmiMachine = (machine: unknown) => ({
  metadata: { name: 'vmi', finalizers: [FINALIZER] },
  spec: { domain: { firmware: { uuid: 'a' }, ...(machine === undefined ? {} : { machine }) } },
});
const AT_MACHINE = '/spec/domain/machine';
const TYPED = { op: 'add', path: `${AT_MACHINE}/type`, value: 'q35' };
const AT_VM = '/spec/template/spec/domain/firmware';
const AT_VMI = '/spec/domain/firmware';
const finalizer = { op: 'add', path: '/metadata/finalizers', value: [FINALIZER] };

const mutations: Record<string, Request & { want: unknown[] }> = {
  'a VM without firmware gets uuid and serial': {
    path: VM,
    object: vmFirmware(null),
    want: [{ op: 'add', path: AT_VM, value: { uuid: 'uuid-1', serial: 'uuid-2' } }],
  },
  'a VM that brings both keeps them': { path: VM, object: vmFirmware({ uuid: 'a', serial: 'b' }), want: [] },
  'a VM that brings its uuid gets a serial': {
    path: VM,
    object: vmFirmware({ uuid: 'a', serial: null, bootloader: {} }),
    want: [{ op: 'add', path: `${AT_VM}/serial`, value: 'uuid-1' }],
  },
  'an empty uuid is filled in': {
    path: VM,
    object: vmFirmware({ uuid: '', serial: 'b' }),
    want: [{ op: 'add', path: `${AT_VM}/uuid`, value: 'uuid-1' }],
  },
  'an update adds nothing': {
    path: VM,
    operation: 'UPDATE',
    object: vmFirmware(null),
    oldObject: vmFirmware(null),
    want: [],
  },
  'a VM that is being deleted is unchanged': {
    path: VM,
    object: { ...vmFirmware(null), metadata: { name: 'db', deletionTimestamp: '2026-01-01T00:00:00Z' } },
    want: [],
  },
  'a VM without a domain is left to its schema': {
    path: VM,
    object: { metadata: {}, spec: { template: 3 } },
    want: [],
  },
  'firmware of another type is left to its schema': { path: VM, object: vmFirmware('uefi'), want: [] },

  'an instance gets a finalizer and a uuid, but no serial': {
    path: VMI,
    object: vmiFirmware(null),
    want: [finalizer, { op: 'add', path: AT_VMI, value: { uuid: 'uuid-1' } }],
  },
  'an instance with finalizers gets one more': {
    path: VMI,
    object: vmiFirmware({ uuid: 'a' }, { finalizers: ['x/y'] }),
    want: [{ op: 'add', path: '/metadata/finalizers/-', value: FINALIZER }],
  },
  'an instance without a machine type gets the default': {
    path: VMI,
    object: vmiMachine(undefined),
    want: [{ op: 'add', path: AT_MACHINE, value: { type: 'q35' } }],
  },
  'an instance with a null machine type gets the default': {
    path: VMI,
    object: vmiMachine({ type: null }),
    want: [TYPED],
  },
  'an instance with an empty machine type gets the default': {
    path: VMI,
    object: vmiMachine({ type: '' }),
    want: [TYPED],
  },
  'an instance keeps its machine type': { path: VMI, object: vmiMachine({ type: 'pc-q35-7.1' }), want: [] },
  'a machine of another type is left to its schema': { path: VMI, object: vmiMachine('q35'), want: [] },
  'a migration gets a finalizer and the name of its instance': {
    path: VMIM,
    object: aMigration(),
    want: [
      { op: 'add', path: '/metadata/finalizers', value: [MIGRATION_FINALIZER] },
      { op: 'add', path: '/metadata/labels', value: { [VMI_NAME_LABEL]: 'db' } },
    ],
  },
  'a wrong instance label of a migration is corrected': {
    path: VMIM,
    object: aMigration({ metadata: { finalizers: [MIGRATION_FINALIZER], labels: { [VMI_NAME_LABEL]: 'web' } } }),
    want: [{ op: 'add', path: '/metadata/labels/kubevirt.io~1vmi-name', value: 'db' }],
  },
  'a migration gets no label if the name of its instance is too long': {
    path: VMIM,
    object: aMigration({ spec: { vmiName: 'x'.repeat(64) }, metadata: { finalizers: [MIGRATION_FINALIZER] } }),
    want: [],
  },
  'an update of a migration is unchanged': {
    path: VMIM,
    operation: 'UPDATE',
    object: aMigration(),
    oldObject: aMigration(),
    want: [],
  },
  'an instance with all fields is unchanged': {
    path: VMI,
    object: vmiFirmware({ uuid: 'a' }, { finalizers: [FINALIZER] }),
    want: [],
  },
};

for (const [name, { want, ...request }] of Object.entries(mutations)) {
  test(name, async () => {
    const { allowed, patch } = await ask(request);
    assert.equal(allowed, true);
    // identity-edits.test.ts tests the annotations.
    const others = patch.filter(({ path }: { path: string }) => path !== '/metadata/annotations');
    assert.deepEqual(others, want);
    // The patch applies to the object.
    assert.ok(isRecord(applyJsonPatch(request.object, patch)));
  });
}

test('a valid VM is allowed', async () => {
  const { allowed, warnings, status } = await ask({ path: '/validate-virtualmachines?timeout=10s', object: aVm() });
  assert.deepEqual({ allowed, warnings, status }, { allowed: true, warnings: undefined, status: undefined });
});

test('a VM is refused with all errors and warnings', async () => {
  const object = aVm({ spec: { running: true, instancetype: {} } });
  const { allowed, status, warnings } = await ask({ path: '/validate-virtualmachines', object });
  assert.equal(allowed, false);
  assert.deepEqual(warnings, ['spec.running is deprecated, please use spec.runStrategy instead.']);
  assert.equal(status?.code, 422);
  assert.equal(status.reason, 'Invalid');
  assert.equal(
    status.message,
    'spec.instancetype: Forbidden: is not supported yet; set cpu and memory in spec.template.spec.domain, spec.running: Forbidden: Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead',
  );
  assert.equal(status.details.causes.length, 2);
});

test('a delete is allowed', async () => {
  const request = { path: '/validate-virtualmachines', operation: 'DELETE', oldObject: aVm({ spec: { nonsense: 1 } }) };
  assert.equal((await ask(request)).allowed, true);
});

for (const [user, want] of [
  [ADMIN, false],
  [CONTROLLER, true],
] as const) {
  test(`the grace period of an instance, changed by ${user}`, async () => {
    const object = aVmi({ spec: { terminationGracePeriodSeconds: 0 } });
    const path = '/validate-virtualmachineinstances';
    const answer = await ask({ path, operation: 'UPDATE', object, oldObject: aVmi(), user });
    assert.equal(answer.allowed, want);
  });
}

const UUID = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const SHARED = `firmware uuid ${UUID} is also that of`;
const ELSEWHERE = `${SHARED} a VirtualMachine in another namespace`;
const others = (...keys: string[]) =>
  keys.map((key) => {
    const [namespace = '', name = ''] = key.split('/');
    return { namespace, name };
  });

/** The VMs with the same uuid, as `namespace/name`; the VM under review is golden/db. */
const duplicates: Record<string, { same: string[]; vm?: unknown; want?: string[] }> = {
  'no VM has its uuid': { same: [] },
  'only the VM itself has its uuid': { same: ['golden/db'] },
  'another VM of the namespace has its uuid': {
    same: ['golden/db', 'golden/web'],
    want: [`${SHARED} VirtualMachine "web"`],
  },
  'a VM of the same name in another namespace has its uuid': { same: ['golden/db', 'blue/db'], want: [ELSEWHERE] },
  'many VMs have its uuid': {
    same: ['golden/d', 'golden/c', 'blue/x', 'red/y', 'golden/b', 'golden/a'],
    want: [...['a', 'b', 'c'].map((name) => `${SHARED} VirtualMachine "${name}"`), ELSEWHERE],
  },
  'the VM has no uuid': { same: ['golden/web'], vm: { spec: { template: { spec: { domain: { firmware: null } } } } } },
  'the VM is being deleted': { same: ['golden/web'], vm: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } },
};

for (const [name, { same, vm = {}, want }] of Object.entries(duplicates)) {
  for (const operation of ['CREATE', 'UPDATE']) {
    test(`${operation} of a VM: ${name}`, async () => {
      const lookup: Partial<AdmissionLookup> = { vmsWithUuid: (uuid) => (uuid === UUID ? others(...same) : []) };
      const request = { path: '/validate-virtualmachines', object: aVm(vm), operation, lookup };
      const { allowed, warnings } = await ask(operation === 'UPDATE' ? { ...request, oldObject: aVm(vm) } : request);
      assert.deepEqual({ allowed, warnings }, { allowed: true, warnings: want });
    });
  }
}

const withMacs = (...macs: string[]) => ({
  spec: {
    template: {
      spec: { domain: { devices: { interfaces: macs.map((macAddress, i) => ({ name: `n${i}`, macAddress })) } } },
    },
  },
});
const MAC_SHARED = 'MAC address 02:00:00:00:0d:01 is also that of';
const macDuplicates: Record<string, { same: string[]; macs?: string[]; want?: string[] }> = {
  'only the VM itself has its MAC address': { same: ['golden/db'] },
  'other VMs have its MAC address, written differently': {
    same: ['golden/db', 'golden/web', 'blue/db'],
    want: [`${MAC_SHARED} VirtualMachine "web"`, `${MAC_SHARED} a VirtualMachine in another namespace`],
  },
  'the VM names no MAC address': { same: ['golden/web'], macs: [] },
};
for (const [name, { same, macs = ['02-00-00-00-0D-01'], want }] of Object.entries(macDuplicates)) {
  test(`a VM: ${name}`, async () => {
    const lookup: Partial<AdmissionLookup> = {
      vmsWithMac: (mac) => (mac === '02:00:00:00:0d:01' ? others(...same) : []),
    };
    const object = aVm(withMacs(...macs));
    const { warnings } = await ask({ path: '/validate-virtualmachines', object, operation: 'CREATE', lookup });
    assert.deepEqual(warnings, want);
  });
}

const efiImage = [
  { metadata: { name: 'root', annotations: { 'selfsame.io/boot-firmware': 'efi' } } },
] as unknown as ReturnType<AdmissionLookup['claimsOfVm']>;
const withFirmware = (firmware: object = {}) => aVm({ spec: { template: { spec: { domain: { firmware } } } } });
const EFI_ONLY = { bootloader: { efi: { secureBoot: false } } };
const firmwareChanges: Record<string, { object: object; oldObject?: object; want: number }> = {
  'at creation': { object: withFirmware(), want: 1 },
  'that fits, at creation': { object: withFirmware(EFI_ONLY), want: 0 },
  'after a change of the firmware': { object: withFirmware(), oldObject: withFirmware(EFI_ONLY), want: 1 },
  'that was there before': { object: withFirmware(), oldObject: withFirmware(), want: 0 },
};
for (const [title, { want, ...review }] of Object.entries(firmwareChanges)) {
  test(`a VM gets ${want === 0 ? 'no' : 'a'} warning about an image for UEFI ${title}`, async () => {
    const operation = review.oldObject === undefined ? 'CREATE' : 'UPDATE';
    const lookup = { claimsOfVm: () => efiImage };
    const { allowed, warnings = [] } = await ask({ path: '/validate-virtualmachines', ...review, operation, lookup });
    assert.ok(allowed);
    assert.equal(warnings.filter((text) => text.startsWith('the VM boots with BIOS, but the image of')).length, want);
  });
}

const accountOf = (name: string) => `system:serviceaccount:selfsame-system:${name}`;

for (const [user, want] of [
  [ADMIN, false],
  [accountOf('vm-controller'), false],
  [accountOf('restore-controller'), true],
] as const) {
  test(`the template of a VM that is being restored, changed by ${user}`, async () => {
    const status = { restoreInProgress: 'r1' };
    const object = aVm({ status, spec: { template: { spec: { domain: { cpu: { cores: 4 } } } } } });
    const path = '/validate-virtualmachines';
    const { allowed, status: refusal } = await ask({
      path,
      operation: 'UPDATE',
      object,
      oldObject: aVm({ status }),
      user,
    });
    assert.equal(allowed, want);
    if (!want) assert.match(refusal?.message ?? '', /Cannot update VM template until restore "r1" completes$/);
  });
}

const withData = aVmi();
withData.spec.volumes?.push({ name: 'data', persistentVolumeClaim: { claimName: 'data', hotpluggable: true } });
withData.spec.domain.devices?.disks?.push({ name: 'data', disk: { bus: 'scsi' } });

for (const [user, want] of [
  [ADMIN, false],
  [accountOf('vm-controller'), true],
  [accountOf('selfsame-subresources'), true],
  [accountOf('vmi-controller'), false],
] as const) {
  test(`a volume is plugged into an instance by ${user}`, async () => {
    const path = '/validate-virtualmachineinstances';
    const { allowed, status } = await ask({ path, operation: 'UPDATE', object: withData, oldObject: aVmi(), user });
    assert.equal(allowed, want);
    if (!want) assert.equal(status?.message, 'spec: Forbidden: update of VMI object is restricted');
  });
}

test('a change of the chipset is allowed with a warning', async () => {
  const configuration = () => ({ ...CONFIGURATION, emulatedMachines: ['*'] });
  const change = { domain: { machine: { type: 'pc' }, devices: { disks: null } }, volumes: null };
  const { allowed, warnings } = await ask({
    path: '/validate-virtualmachines',
    operation: 'UPDATE',
    object: aVm({ spec: { template: { spec: change } } }),
    oldObject: aVm(),
    lookup: { configuration },
  });
  assert.equal(allowed, true);
  assert.match(warnings?.join() ?? '', /^spec.*the chipset changes from q35 to i440fx: .* virtctl identity diff db/);
});

test('a restore is refused while another restore of its target is unfinished', async () => {
  const path = '/validate-virtualmachinerestores';
  const lookup = (name: string): Partial<AdmissionLookup> => ({
    restoresOf: (namespace, vm) => Promise.resolve(namespace === 'golden' && vm === 'db' ? [{ name }] : []),
  });
  const { allowed, status } = await ask({ path, object: aRestore(), lookup: lookup('r0') });
  assert.equal(allowed, false);
  assert.equal(status?.message, 'spec.target: Forbidden: VirtualMachineRestore "r0" in progress');
  assert.equal((await ask({ path, object: aRestore(), lookup: lookup('r1') })).allowed, true);
  const elsewhere = aRestore({ metadata: { namespace: 'blue' } });
  assert.equal((await ask({ path, object: elsewhere, lookup: lookup('r0') })).allowed, true);
});

test('an invalid snapshot is refused', async () => {
  const path = '/validate-virtualmachinesnapshots';
  assert.equal((await ask({ path, object: aSnapshot() })).allowed, true);
  const object = aSnapshot({ spec: { failureDeadline: 'soon' } });
  assert.equal((await ask({ path, object })).status?.code, 422);
});

for (const [name, path, review] of [
  ['an unknown path', '/validate-nothing', { request: { uid: 'u', operation: 'CREATE' } }],
  ['a review without a request', VM, {}],
  ['an unknown operation', VM, { request: { uid: 'u', operation: 'LOOK' } }],
] as const) {
  test(`refuses ${name}`, async () => {
    const parts = { newUuid: () => '', now: () => NOW, lookup: LOOKUP, markForEvacuation };
    await assert.rejects(reviewAdmission(path, review, parts), { code: 400 });
  });
}
