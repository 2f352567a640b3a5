/**
 * Tests the rows of the scenario table of seed 000 (docs/seeds.md), and the cases U3 to U11 of KubeVirt's own tests, as
 * far as this controller decides them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Firmware } from '#api/domain/firmware.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { VM_FINALIZER } from '#api/names.ts';
import { deriveMissingUuid } from '#api/identity/uuid-admission.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { RunStrategy } from '#api/virtual-machine/schema.ts';
import type { IdentitySpec } from '#api/virtual-machine-identity/kind.ts';
import { buildVmi } from '#controllers/vm/start/build-vmi.ts';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { resolveIdentity } from '#controllers/vm/identity/identity.ts';
import { persistsLegacyUuid } from '#controllers/vm/identity/persist-firmware.ts';
import { aRecord, aVm, aVmi, aWorld, CONFIGURATION, DELETED, UUID } from '#controllers/vm/testing/vm-world.ts';
import { vmStatusOf } from '#controllers/vm/vm-status.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { conflict } from '#kube/api-error.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import type { Change, PatchChange } from '#runtime/plan.ts';

const LEGACY = legacyUuid('db');
const OTHER = 'ffffffff-8ce6-44d9-9e1b-6b1a0a3b2a10';
const machine = { type: 'pc-q35-7.2' };

function vmWith(firmware: Firmware | undefined, runStrategy: RunStrategy = 'Halted', metadata: ObjectMeta = {}) {
  const domain = firmware === undefined ? { machine } : { machine, firmware };
  return aVm({ runStrategy, template: { domain }, metadata });
}

function recordOf(vm: Stored<VirtualMachine>, firmware: IdentitySpec['firmware']) {
  return { ...aRecord(vm), spec: { ...aRecord(vm).spec, firmware } };
}

const aRunningVmi = (firmware: Firmware) => aVmi('Running', { vm: vmWith(firmware, 'Always') });

function vmPatches(changes: readonly Change[]): PatchChange[] {
  return changes.filter((change) => change.do === 'patch').filter(({ type }) => type === VIRTUAL_MACHINES);
}

/** Returns the patched firmware, and the Event reason with the stated origin. */
function persisted(world: Partial<VmWorld>): [unknown, string] | undefined {
  const patches = vmPatches(decideVm(aWorld({ identity: undefined, ...world })).changes);
  assert.ok(patches.length <= 1, 'one write');
  const [patch] = patches;
  if (patch?.reason === undefined) return undefined;
  assert.ok(patch.uid === 'vm-uid' && patch.patch.type === 'merge');
  const body = patch.patch.body as VirtualMachine;
  assert.equal(body.metadata.resourceVersion, '1');
  const { firmware } = body.spec.template.spec?.domain ?? {};
  if (patch.reason === 'FirmwareUUIDPersisted') assert.ok(patch.why.includes(firmware?.uuid ?? '?'), patch.why);
  return [firmware, `${patch.reason} ${/record|instance|name|had before|is new/.exec(patch.why)?.[0]}`];
}

interface Case {
  readonly world: Partial<VmWorld>;
  readonly want: [Firmware, string] | undefined;
}

const bare = vmWith(undefined);
const alwaysBare = vmWith(undefined, 'Always');
const [BY_NAME, BY_RECORD, BY_INSTANCE, NEW] = ['name', 'record', 'instance', 'is new'].map(
  (from) => `FirmwareUUIDPersisted ${from}`,
);

const cases: Record<string, Case> = {
  'row 1: a stopped VM without a uuid gets the legacy uuid': {
    world: { vm: bare },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'a VM that is older than uuid admission gets the legacy uuid': {
    world: { vm: bare, uuidAdmissionSince: '2026-01-01T11:00:01Z' },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'a younger VM that bypassed the webhook gets a random uuid': {
    world: { vm: bare, uuidAdmissionSince: '2026-01-01T11:00:00Z' },
    want: [{ uuid: deriveMissingUuid(bare, '2026-01-01T11:00:00Z') }, NEW!],
  },
  'a younger VM with a record gets the uuid of its record': {
    world: { vm: bare, identity: recordOf(bare, { uuid: OTHER }), uuidAdmissionSince: '2026-01-01T11:00:00Z' },
    want: [{ uuid: OTHER }, BY_RECORD!],
  },
  'row 2: a stopped VM with a uuid is left alone': { world: { vm: vmWith({ uuid: UUID }) }, want: undefined },
  'row 3: a running VM without a uuid gets the uuid of its instance': {
    world: { vm: alwaysBare, identity: recordOf(alwaysBare, {}), vmi: aRunningVmi({ uuid: LEGACY }) },
    want: [{ uuid: LEGACY }, BY_INSTANCE!],
  },
  'row 3: a running VM gets the legacy uuid if its instance has none': {
    world: { vm: alwaysBare, identity: recordOf(alwaysBare, {}), vmi: aVmi('Running', { spec: { domain: {} } }) },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'row 9: a changed uuid is left alone': {
    world: {
      vm: vmWith({ uuid: OTHER }, 'Always'),
      identity: aRecord(vmWith({ uuid: UUID })),
      vmi: aRunningVmi({ uuid: UUID }),
    },
    want: undefined,
  },
  'U3: a VM that was changed before it had a uuid gets the same one': {
    world: { vm: vmWith({ serial: 's1' }, 'Halted', { generation: 7 }) },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'U6: a template without firmware': { world: { vm: bare }, want: [{ uuid: LEGACY }, BY_NAME!] },
  'U6: an empty uuid is set, other firmware fields are kept': {
    world: { vm: vmWith({ uuid: '', bootloader: { bios: {} } }) },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'U6: the second reconcile changes nothing': { world: { vm: vmWith({ uuid: LEGACY }) }, want: undefined },
  'the record has precedence over the instance and the name, and restores its serial': {
    world: {
      vm: alwaysBare,
      identity: recordOf(alwaysBare, { uuid: UUID, serial: 's1' }),
      vmi: aRunningVmi({ uuid: OTHER, serial: 's2' }),
    },
    want: [{ uuid: UUID, serial: 's1' }, BY_RECORD!],
  },
  'the serial comes from the instance if the record has none': {
    world: {
      vm: alwaysBare,
      identity: recordOf(alwaysBare, { uuid: UUID }),
      vmi: aRunningVmi({ uuid: UUID, serial: 's2' }),
    },
    want: [{ uuid: UUID, serial: 's2' }, BY_RECORD!],
  },
  'the record of an earlier VM is not used': {
    world: { vm: bare, identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'the instance of another owner is not used': {
    world: { vm: bare, foreignVmi: aVmi('Running') },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'a serial in the template is kept': {
    world: { vm: vmWith({ serial: 'own' }), identity: recordOf(bare, { uuid: UUID, serial: 's1' }) },
    want: [{ uuid: UUID }, BY_RECORD!],
  },
  'a serial alone is restored': {
    world: { vm: vmWith({ uuid: UUID }), identity: recordOf(bare, { uuid: UUID, serial: 's1' }) },
    want: [{ serial: 's1' }, 'FirmwareSerialPersisted had before'],
  },
  'a VM that a snapshot holds gets its uuid': {
    world: { vm: alwaysBare, lock: { kind: 'snapshot', name: 's' } },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'a VM that cannot start gets its uuid': {
    world: { vm: alwaysBare, identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
    want: [{ uuid: LEGACY }, BY_NAME!],
  },
  'a VM under deletion does not get a uuid': { world: { vm: vmWith(undefined, 'Halted', DELETED) }, want: undefined },
  'a VM waits for the instance that it is about to adopt': {
    world: { vm: alwaysBare, foreignVmi: aVmi('Running', { metadata: { ownerReferences: [] } }), mayAdopt: true },
    want: undefined,
  },
  'a held VM waits for the instance that it is about to adopt': {
    world: {
      vm: alwaysBare,
      foreignVmi: aVmi('Running', { metadata: { ownerReferences: [] } }),
      mayAdopt: true,
      lock: { kind: 'restore', name: 'r' },
    },
    want: undefined,
  },
};

for (const [name, { world, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(persisted(world), want));
}

test('a start writes the uuid with its other preparations, before it creates the instance', () => {
  const vm = aVm({ template: { domain: {} }, metadata: { finalizers: undefined } });
  const { changes, continueOnError } = decideVm(aWorld({ vm, identity: undefined }));
  assert.deepEqual(
    changes.map((change) => `${change.do} ${change.type.kind}`),
    ['patch VirtualMachine', 'create VirtualMachineIdentity'],
  );
  const [patch] = vmPatches(changes);
  assert.deepEqual(patch?.patch.body, {
    metadata: { resourceVersion: '1', finalizers: [VM_FINALIZER] },
    spec: { template: { spec: { domain: { machine: { type: 'q35' }, firmware: { uuid: LEGACY } } } } },
  });
  assert.ok(patch.reason === 'FirmwareUUIDPersisted' && continueOnError === true);
});

test('a start writes the uuid before it creates the instance, if nothing else is missing', () => {
  const plan = decideVm(aWorld({ vm: alwaysBare, identity: aRecord(alwaysBare) }));
  assert.deepEqual(
    plan.changes.map((change) => `${change.do} ${change.type.kind}`),
    ['patch VirtualMachine'],
  );
});

test('an unwanted instance is stopped and a lost record is created before the uuid is written', () => {
  const vmi = aRunningVmi({ uuid: LEGACY });
  const first = (world: Partial<VmWorld>) => {
    const [change] = decideVm(aWorld(world)).changes;
    return change && `${change.do} ${change.type.kind}`;
  };
  assert.equal(first({ vm: bare, vmi }), 'delete VirtualMachineInstance');
  assert.equal(first({ vm: alwaysBare, vmi, identity: undefined }), 'create VirtualMachineIdentity');
});

const failureOf = (status: ReturnType<typeof concludeVm>) =>
  ((status?.['conditions'] ?? []) as { type: string; reason?: string; message?: string }[]).find(
    ({ type }) => type === 'Failure',
  );

test('U7: a failed patch is reported with its cause, a stale cache is not', () => {
  for (const vm of [bare, alwaysBare]) {
    const world = aWorld({ vm, identity: aRecord(vm) });
    const { changes, continueOnError } = decideVm(world);
    const change = changes[0]!;
    assert.equal(continueOnError, true);
    assert.deepEqual(
      { ...failureOf(concludeVm(world, [{ change, error: new Error('no room') }])), lastTransitionTime: undefined },
      {
        type: 'Failure',
        status: 'True',
        reason: 'FirmwareUUIDError',
        message: 'Failure while persisting the firmware uuid: no room',
        lastTransitionTime: undefined,
      },
    );
    assert.equal(concludeVm(world, [{ change, error: conflict(VIRTUAL_MACHINES, 'db', 'changed') }]), undefined);
  }
});

test('U7: another failure of a start is reported as a failed start', () => {
  const world = aWorld({ identity: undefined });
  const change = decideVm(world).changes[0]!;
  const failure = failureOf(concludeVm(world, [{ change, error: new Error('no room') }]));
  assert.deepEqual([failure?.reason, failure?.message], ['FailedCreate', 'Failure while starting VMI: no room']);
});

test('U8, U9: an instance has the uuid of the template, otherwise the legacy uuid', () => {
  const uuidOf = (name: string, firmware?: Firmware) => {
    const vm = vmWith(firmware, 'Always', { name });
    return buildVmi(vm, resolveIdentity(vm, undefined), CONFIGURATION).spec.domain.firmware?.uuid;
  };
  assert.equal(uuidOf('testvm'), '5a9fc181-957e-5c32-9e5a-2de5e9673531');
  assert.equal(uuidOf('testvm'), uuidOf('testvm'));
  assert.notEqual(uuidOf('testvm'), uuidOf('testvm1'));
  assert.equal(uuidOf('testvm', { uuid: UUID }), UUID);
});

const restarts: Record<string, [VmWorld, boolean]> = {
  'U10: no restart is required before the uuid is written': [
    aWorld({ vm: alwaysBare, vmi: aRunningVmi({ uuid: LEGACY }) }),
    false,
  ],
  'U10: no restart is required after the uuid is written': [
    aWorld({
      vm: {
        ...vmWith({ uuid: LEGACY }, 'Always', { generation: 2 }),
        status: { conditions: [{ type: 'RestartRequired', status: 'True' }] },
      },
      vmi: aRunningVmi({ uuid: LEGACY }),
    }),
    false,
  ],
  'U10: no restart is required for a uuid that only the instance has': [
    aWorld({ vm: alwaysBare, identity: recordOf(alwaysBare, {}), vmi: aRunningVmi({ uuid: UUID, serial: 's1' }) }),
    false,
  ],
  'U10: no restart is required for the same uuid in upper case': [
    aWorld({ vm: vmWith({ uuid: UUID.toUpperCase() }, 'Always'), vmi: aRunningVmi({ uuid: UUID }) }),
    false,
  ],
  'U11: a restart is required for another uuid': [
    aWorld({ vm: vmWith({ uuid: OTHER }, 'Always'), vmi: aRunningVmi({ uuid: UUID }) }),
    true,
  ],
};

for (const [name, [world, want]] of Object.entries(restarts)) {
  test(name, () => {
    const { conditions = [] } = vmStatusOf(world);
    assert.equal(
      conditions.some(({ type, status }) => type === 'RestartRequired' && status === 'True'),
      want,
    );
  });
}

test('persisted legacy uuids are recognized by the change', () => {
  const first = (world: Partial<VmWorld>) => decideVm(aWorld(world)).changes[0]!;
  assert.equal(persistsLegacyUuid(first({ vm: bare, identity: undefined })), true);
  assert.equal(persistsLegacyUuid(first({ vm: alwaysBare, identity: undefined })), true);
  assert.equal(persistsLegacyUuid(first({ vm: bare, identity: recordOf(bare, { uuid: UUID }) })), false);
  const serial = { vm: vmWith({ uuid: LEGACY }), identity: recordOf(bare, { uuid: LEGACY, serial: 's1' }) };
  assert.equal(persistsLegacyUuid(first(serial)), false);
  assert.equal(persistsLegacyUuid(first({ vm: aVm({ metadata: { finalizers: undefined } }) })), false);
  assert.equal(persistsLegacyUuid(first({})), false);
});
