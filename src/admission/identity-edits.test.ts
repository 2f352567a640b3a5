import assert from 'node:assert/strict';
import { test } from 'node:test';
import { patchAnnotations } from '#admission/annotation-patch.ts';
import { recordIdentityEdits } from '#admission/identity-edits.ts';
import {
  ACTING_FOR_ANNOTATION,
  IDENTITY_EDITS_ANNOTATION,
  MAX_EDITS,
  readEdits,
} from '#api/identity/identity-edits.ts';
import { LEGACY_RULE, legacyUuid } from '#api/identity/legacy-uuid.ts';
import { LAST_RESTORE_ANNOTATION } from '#api/names.ts';
import { accountOf } from '#api/own-accounts.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { KubeObject } from '#kube/meta.ts';

const NOW = '2026-01-02T00:00:00Z';
const BEFORE = '2026-01-01T00:00:00Z';
const CREATED = { created: { at: BEFORE, by: 'alice' } };
const NIC = { name: 'lan', macAddress: '02:00:00:00:00:01' };

interface Template {
  readonly firmware?: object;
  readonly machine?: object;
  readonly devices?: object;
}

function aVm(domain: Template, annotations?: Record<string, string>): KubeObject {
  const full = { firmware: { uuid: 'u1', serial: 's1' }, devices: { disks: [{ name: 'root' }], interfaces: [NIC] } };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', ...(annotations && { annotations }) },
    spec: { template: { spec: { domain: { ...full, ...domain } } } },
  };
}

const withEdits = (edits: object) => ({ [IDENTITY_EDITS_ANNOTATION]: JSON.stringify(edits) });

interface Case {
  readonly user?: string;
  readonly object: KubeObject;
  /** Defaults to a VM that alice has created; null if the VM is created. */
  readonly oldObject?: KubeObject | null;
  readonly want: Record<string, object>;
}

const RESTORE = 'back-0c53b12d-8ce6-44d9-9e1b-6b1a0a3b2a10';
const OWN_ACCOUNT = accountOf('vm-controller');
const BOB = { at: NOW, by: 'bob' };

const cases: Record<string, Case> = {
  'records who creates a VM': { object: aVm({}), oldObject: null, want: { created: BOB } },
  'ignores the annotation of a new VM': {
    object: aVm({}, withEdits(CREATED)),
    oldObject: null,
    want: { created: BOB },
  },
  'records who changes the uuid': {
    object: aVm({ firmware: { uuid: 'u2', serial: 's1' } }),
    want: { 'firmware.uuid': BOB },
  },
  'a write without uuid and serial is not recorded': { object: aVm({ firmware: {} }), want: {} },
  'an unchanged VM keeps its annotation, whatever the request has': {
    object: aVm({}, withEdits({ created: { at: NOW, by: 'mallory' } })),
    want: {},
  },
  'a write without annotations keeps the annotation': { object: aVm({}), want: {} },
  'records MAC address, boot order, disk and interface separately': {
    object: aVm({
      devices: {
        disks: [{ name: 'root', bootOrder: 1 }, { name: 'data' }],
        interfaces: [{ name: 'lan', macAddress: '02:00:00:00:00:02' }, { name: 'wan' }],
      },
    }),
    want: { 'disks.data': BOB, 'interfaces.lan.macAddress': BOB, 'interfaces.wan': BOB, bootOrder: BOB },
  },
  'records the removal of a disk': {
    object: aVm({ devices: { disks: [], interfaces: [NIC] } }),
    want: { 'disks.root': BOB, bootOrder: BOB },
  },
  'records another device as a device': {
    object: aVm({ devices: { disks: [{ name: 'root' }], interfaces: [NIC], rng: {} } }),
    want: { devices: BOB },
  },
  'records the legacy rule for our controller': {
    user: OWN_ACCOUNT,
    object: aVm({ firmware: { uuid: legacyUuid('db'), serial: 's1' } }),
    want: { 'firmware.uuid': { at: NOW, cause: LEGACY_RULE } },
  },
  'records a restore by its annotation': {
    user: accountOf('restore-controller'),
    object: aVm({ firmware: { uuid: 'u0', serial: 's1' } }, { [LAST_RESTORE_ANNOTATION]: RESTORE }),
    want: { 'firmware.uuid': { at: NOW, cause: 'VirtualMachineRestore back' } },
  },
  'ignores the restore annotation of a user': {
    object: aVm({ firmware: { uuid: 'u0', serial: 's1' } }, { [LAST_RESTORE_ANNOTATION]: RESTORE }),
    want: { 'firmware.uuid': BOB },
  },
  'records the cause that our component names': {
    user: OWN_ACCOUNT,
    object: aVm({ machine: { type: 'q35' } }, { [ACTING_FOR_ANNOTATION]: '{"cause":"transition by Job j"}' }),
    oldObject: aVm({ machine: { type: 'pc' } }, withEdits(CREATED)),
    want: { 'machine.type': { at: NOW, cause: 'transition by Job j' } },
  },
  'ignores the cause that a user names': {
    object: aVm({ machine: { type: 'q35' } }, { [ACTING_FOR_ANNOTATION]: '{"by":"alice"}' }),
    want: { 'machine.type': BOB },
  },
  'keeps the author of a cleared type when the default is filled in': {
    user: OWN_ACCOUNT,
    object: aVm({ machine: { type: 'q35' } }),
    oldObject: aVm({}, withEdits({ ...CREATED, 'machine.type': { at: BEFORE, cause: 'transition by Job j' } })),
    want: { 'machine.type': { at: BEFORE, cause: 'transition by Job j' } },
  },
};
for (const [title, { user = 'bob', object, oldObject = aVm({}, withEdits(CREATED)), want }] of Object.entries(cases)) {
  test(title, () => {
    const old = oldObject ?? undefined;
    const about = { uid: '1', namespace: 'ns', name: 'db', dryRun: false, isReplace: false, user };
    const request = { ...about, operation: old === undefined ? 'CREATE' : 'UPDATE', object, oldObject: old } as const;
    const after = applyJsonPatch(object, patchAnnotations(object, recordIdentityEdits(request, NOW))) as KubeObject;
    const { annotations = {} } = after.metadata;
    const edits = Object.fromEntries(readEdits(annotations[IDENTITY_EDITS_ANNOTATION]));
    assert.deepEqual(edits, old === undefined ? want : { ...CREATED, ...want });
    assert.ok(!(ACTING_FOR_ANNOTATION in annotations));
    const again = recordIdentityEdits({ ...request, user: 'carol', object: after, oldObject: after }, 'later');
    assert.deepEqual(patchAnnotations(after, again), [], 'a second write changes nothing');
  });
}

test('drops the oldest edits', () => {
  const many = Object.fromEntries(
    Array.from({ length: MAX_EDITS }, (_, n) => [`disks.d${n}`, { at: BEFORE, by: 'x' }]),
  );
  const old = aVm({}, withEdits({ ...many, 'disks.d0': { at: '2025-01-01T00:00:00Z', by: 'x' } }));
  const object = aVm({ machine: { type: 'q35' } });
  const about = {
    uid: '1',
    namespace: 'ns',
    name: 'db',
    dryRun: false,
    isReplace: false,
    user: 'bob',
    operation: 'UPDATE',
  } as const;
  const [[, text] = []] = recordIdentityEdits({ ...about, object, oldObject: old }, NOW);
  const edits = readEdits(text);
  assert.deepEqual([edits.size, edits.has('disks.d0'), edits.has('machine.type')], [MAX_EDITS, false, true]);
});
