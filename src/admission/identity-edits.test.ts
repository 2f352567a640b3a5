import assert from 'node:assert/strict';
import { test } from 'node:test';
import { patchAnnotations } from '#admission/annotation-patch.ts';
import { recordIdentityEdits } from '#admission/identity-edits.ts';
import { ACTING_FOR_ANNOTATION, IDENTITY_EDITS_ANNOTATION, MAX_EDITS, readEdits } from '#api/identity-edits.ts';
import { LEGACY_RULE, legacyUuid } from '#api/legacy-uuid.ts';
import { LAST_RESTORE_ANNOTATION } from '#api/names.ts';
import { accountOf } from '#api/own-accounts.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';
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

const noted = (edits: object) => ({ [IDENTITY_EDITS_ANNOTATION]: JSON.stringify(edits) });

interface Case {
  readonly user?: string;
  readonly object: KubeObject;
  /** A VM that alice has created, unless it says otherwise; null: the VM is created. */
  readonly oldObject?: KubeObject | null;
  readonly want: Record<string, object>;
}

const RESTORE = 'back-0c53b12d-8ce6-44d9-9e1b-6b1a0a3b2a10';
const OURS = accountOf('vm-controller');
const BOB = { at: NOW, by: 'bob' };

const cases: Record<string, Case> = {
  'who creates a VM is noted': { object: aVm({}), oldObject: null, want: { created: BOB } },
  'notes that a new VM brings do not count': {
    object: aVm({}, noted(CREATED)),
    oldObject: null,
    want: { created: BOB },
  },
  'who changes the uuid is noted': {
    object: aVm({ firmware: { uuid: 'u2', serial: 's1' } }),
    want: { 'firmware.uuid': BOB },
  },
  'a write without uuid and serial does not remove them': { object: aVm({ firmware: {} }), want: {} },
  'an unchanged VM keeps its notes, whatever the writer sends': {
    object: aVm({}, noted({ created: { at: NOW, by: 'mallory' } })),
    want: {},
  },
  'a write without annotations keeps the notes': { object: aVm({}), want: {} },
  'a MAC address, a boot order, a disk and an interface are parts of their own': {
    object: aVm({
      devices: {
        disks: [{ name: 'root', bootOrder: 1 }, { name: 'data' }],
        interfaces: [{ name: 'lan', macAddress: '02:00:00:00:00:02' }, { name: 'wan' }],
      },
    }),
    want: { 'disks.data': BOB, 'interfaces.lan.macAddress': BOB, 'interfaces.wan': BOB, bootOrder: BOB },
  },
  'a disk that goes is noted': {
    object: aVm({ devices: { disks: [], interfaces: [NIC] } }),
    want: { 'disks.root': BOB, bootOrder: BOB },
  },
  'another device is noted as a device': {
    object: aVm({ devices: { disks: [{ name: 'root' }], interfaces: [NIC], rng: {} } }),
    want: { devices: BOB },
  },
  'a controller of ours that follows the legacy rule': {
    user: OURS,
    object: aVm({ firmware: { uuid: legacyUuid('db'), serial: 's1' } }),
    want: { 'firmware.uuid': { at: NOW, cause: LEGACY_RULE } },
  },
  'a restore is known by its mark': {
    user: accountOf('restore-controller'),
    object: aVm({ firmware: { uuid: 'u0', serial: 's1' } }, { [LAST_RESTORE_ANNOTATION]: RESTORE }),
    want: { 'firmware.uuid': { at: NOW, cause: 'VirtualMachineRestore back' } },
  },
  'nobody else is known by the mark of a restore': {
    object: aVm({ firmware: { uuid: 'u0', serial: 's1' } }, { [LAST_RESTORE_ANNOTATION]: RESTORE }),
    want: { 'firmware.uuid': BOB },
  },
  'our parts say for whom they write': {
    user: OURS,
    object: aVm({ machine: { type: 'q35' } }, { [ACTING_FOR_ANNOTATION]: '{"cause":"transition by Job j"}' }),
    oldObject: aVm({ machine: { type: 'pc' } }, noted(CREATED)),
    want: { 'machine.type': { at: NOW, cause: 'transition by Job j' } },
  },
  'nobody else writes for others': {
    object: aVm({ machine: { type: 'q35' } }, { [ACTING_FOR_ANNOTATION]: '{"by":"alice"}' }),
    want: { 'machine.type': BOB },
  },
  'the default in the place of a type that somebody cleared is theirs': {
    user: OURS,
    object: aVm({ machine: { type: 'q35' } }),
    oldObject: aVm({}, noted({ ...CREATED, 'machine.type': { at: BEFORE, cause: 'transition by Job j' } })),
    want: { 'machine.type': { at: BEFORE, cause: 'transition by Job j' } },
  },
};
for (const [title, { user = 'bob', object, oldObject = aVm({}, noted(CREATED)), want }] of Object.entries(cases)) {
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
    assert.deepEqual(patchAnnotations(after, again), [], 'the same again is no change');
  });
}

test('the notes are bounded: the oldest go first', () => {
  const many = Object.fromEntries(
    Array.from({ length: MAX_EDITS }, (_, n) => [`disks.d${n}`, { at: BEFORE, by: 'x' }]),
  );
  const old = aVm({}, noted({ ...many, 'disks.d0': { at: '2025-01-01T00:00:00Z', by: 'x' } }));
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
