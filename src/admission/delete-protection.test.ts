/** The webhook about delete protection: who is noted, and what a live look refuses. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { patchAnnotations } from '#admission/annotation-patch.ts';
import { reviewProtectedDelete, type ProtectionLookup } from '#admission/protected-deletes.ts';
import { recordProtection } from '#admission/protection-annotations.ts';
import { aVm } from '#api/validation/testing/valid-objects.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const BY = 'selfsame.io/delete-protection-by';
const AT = 'selfsame.io/delete-protection-at';
const REASON = 'selfsame.io/delete-protection-reason';
const ASKED = { uid: 'u', namespace: '', name: '', dryRun: false, isReplace: false } as const;
const NOW = '2026-02-02T00:00:00Z';
const THEN = '2026-01-01T00:00:00Z';

type Annotations = Readonly<Record<string, unknown>> | null | undefined;

function vm(label: string | undefined, annotations?: Annotations): KubeObject {
  const labels = label === undefined ? undefined : { [LABEL]: label };
  return { kind: 'VirtualMachine', metadata: { name: 'db', labels, annotations } } as unknown as KubeObject;
}

interface NoteCase {
  readonly old?: KubeObject;
  readonly object: KubeObject;
  /** The annotations afterwards; absent: nothing is patched. */
  readonly want?: Annotations;
}

const eve = { [BY]: 'eve', [AT]: THEN };
const now = { [BY]: 'alice', [AT]: NOW };

const notes: Record<string, NoteCase> = {
  'made protected': { object: vm('true'), want: now },
  'made protected, with annotations': {
    object: vm('True', { a: 'b', [REASON]: 'gold' }),
    want: { a: 'b', [REASON]: 'gold', ...now },
  },
  'made protected, with null for annotations': { object: vm('true', null), want: now },
  'made protected by somebody who says it was another': { object: vm('true', eve), want: now },
  'made without protection': { object: vm(undefined, { a: 'b' }) },
  'made without protection, with forged notes': { object: vm('yes', { a: 'b', ...eve }), want: { a: 'b' } },
  'made without protection, with a reason': { object: vm(undefined, { [REASON]: 'later' }) },
  'labels of another type are left to the server': { object: { metadata: { labels: 3 } } as unknown as KubeObject },
  'annotations of another type are left to the server': { object: vm('true', 3 as unknown as Annotations) },
  'protection begins': { old: vm(undefined, { a: 'b' }), object: vm('true', { a: 'b' }), want: { a: 'b', ...now } },
  'protection begins again': { old: vm('false', eve), object: vm('true', eve), want: now },
  'protection begins with another spelling of nothing': { old: vm('TRUE'), object: vm('True'), want: now },
  'protection ends': { old: vm('true', eve), object: vm(undefined, eve), want: now },
  'protection ends with the reason': {
    old: vm('true', { ...eve, [REASON]: 'gold' }),
    object: vm('false', { ...eve, [REASON]: 'gold' }),
    want: now,
  },
  'protection ends for another reason': {
    old: vm('true', { ...eve, [REASON]: 'gold' }),
    object: vm('false', { ...eve, [REASON]: 'moved' }),
    want: { ...now, [REASON]: 'moved' },
  },
  'protection ends together with all annotations': { old: vm('true', eve), object: vm(undefined), want: now },
  'true becomes True': { old: vm('true', eve), object: vm('True', eve) },
  'nothing about it changes': { old: vm('true', eve), object: vm('true', { ...eve, a: 'b' }) },
  'somebody else is named': { old: vm('true', eve), object: vm('true', { [BY]: 'bob', [AT]: THEN }), want: eve },
  'the time is moved': { old: vm('true', eve), object: vm('true', { [BY]: 'eve', [AT]: NOW }), want: eve },
  'the notes are removed': { old: vm('true', eve), object: vm('true', { a: 'b' }), want: { a: 'b', ...eve } },
  'all annotations are removed': { old: vm('true', eve), object: vm('true'), want: eve },
  'notes are forged where there were none': { old: vm(undefined), object: vm(undefined, eve), want: {} },
  'the reason is the business of people': {
    old: vm('true', { ...eve, [REASON]: 'a' }),
    object: vm('true', { ...eve, [REASON]: 'b' }),
  },
};

describe('who and when', () => {
  for (const [name, { old, object, want }] of Object.entries(notes)) {
    test(name, () => {
      const operation = old === undefined ? 'CREATE' : 'UPDATE';
      const request = { ...ASKED, operation, user: 'alice', object, oldObject: old } as const;
      const patch = patchAnnotations(object, recordProtection(request, NOW));
      if (want === undefined) return assert.deepEqual(patch, []);
      const after = applyJsonPatch(object, patch) as KubeObject;
      assert.deepEqual(after.metadata.annotations, want);
      // Asked again about what it made, it has nothing to add.
      const again = patchAnnotations(after, recordProtection({ ...request, object: after, oldObject: old }, NOW));
      assert.deepEqual(again, []);
    });
  }
});

const withDisk = (claimName: string) => ({
  spec: { template: { spec: { volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }] } } },
});

function stored(namespace: string, name: string, patch: object = {}): Stored<VirtualMachine> {
  const base = aVm(patch) as Stored<VirtualMachine>;
  return { ...base, metadata: { ...base.metadata, namespace, name, uid: `${name}-uid` } };
}

const GONE = { metadata: { deletionTimestamp: THEN } };
const VMS = [
  stored('blue', 'api', withDisk('api-root')),
  stored('golden', 'db', withDisk('root')),
  stored('golden', 'web', withDisk('web-root')),
  stored('leaving', 'old', { ...GONE, ...withDisk('root') }),
  ...['a', 'b', 'c', 'd', 'e'].map((name) => stored('many', name, withDisk('shared'))),
];

/** Like the API: the first ones, of one namespace or of all. */
const lookup: ProtectionLookup = {
  protectedVms: async ({ namespace, limit }) =>
    VMS.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace).slice(0, limit),
};

interface LookCase {
  readonly object: { readonly kind: string; readonly metadata: object; readonly [field: string]: unknown };
  readonly user?: string;
  readonly vms?: ProtectionLookup;
  readonly want?: string;
}

const first = 'remove the label kubevirt.io/vm-delete-protection from them first';
const namespace = (name: string) => ({ kind: 'Namespace', metadata: { name } });
const claim = (inNamespace: string, name: string, metadata: object = {}) => ({
  kind: 'PersistentVolumeClaim',
  metadata: { namespace: inNamespace, name, ...metadata },
});
const volume = (phase: string, claimRef?: object) => ({
  kind: 'PersistentVolume',
  metadata: { name: 'pv' },
  spec: { claimRef },
  status: { phase },
});
const definition = (name: string) => ({ kind: 'CustomResourceDefinition', metadata: { name } });
const owned = (uid: string, controller: boolean) => ({
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller }],
});

const looks: Record<string, LookCase> = {
  'a namespace with protected VMs': {
    object: namespace('golden'),
    want: `Namespace "golden" cannot be deleted: it holds the protected VirtualMachine db, web; ${first}`,
  },
  'a namespace with many': {
    object: namespace('many'),
    want: `Namespace "many" cannot be deleted: it holds the protected VirtualMachine a, b, c and others; ${first}`,
  },
  'a namespace without': { object: namespace('empty') },
  'a namespace whose protected VM is being deleted': { object: namespace('leaving') },
  'a disk of a protected VM': {
    object: claim('golden', 'root'),
    want: `PersistentVolumeClaim "root" cannot be deleted: it is a disk of the protected VirtualMachine db; ${first}`,
  },
  'a disk of that name elsewhere': { object: claim('blue', 'root') },
  'a disk of a VM that is being deleted': { object: claim('leaving', 'root') },
  'a claim that a protected VM controls': {
    object: claim('golden', 'state', owned('db-uid', true)),
    want: `PersistentVolumeClaim "state" cannot be deleted: it is a disk of the protected VirtualMachine db; ${first}`,
  },
  'a claim that a protected VM owns like others': { object: claim('golden', 'state', owned('db-uid', false)) },
  'state of a protected VM that nobody owns': {
    object: claim('golden', 'kept', { labels: { 'persistent-state-for': 'db' } }),
    want: `PersistentVolumeClaim "kept" cannot be deleted: it is a disk of the protected VirtualMachine db; ${first}`,
  },
  'state of another VM that nobody owns': {
    object: claim('golden', 'kept', { labels: { 'persistent-state-for': 'dbx' } }),
  },
  'a claim of another owner': { object: claim('golden', 'state', owned('x-uid', true)) },
  'a disk that a restore replaces': {
    object: claim('golden', 'root'),
    user: 'system:serviceaccount:selfsame-system:restore-controller',
  },
  'a namespace, whoever asks': {
    object: namespace('blue'),
    user: 'system:serviceaccount:selfsame-system:restore-controller',
    want: `Namespace "blue" cannot be deleted: it holds the protected VirtualMachine api; ${first}`,
  },
  'a volume that holds a disk': {
    object: volume('Bound', { namespace: 'golden', name: 'root' }),
    want: `PersistentVolume "pv" cannot be deleted: it holds a disk of the protected VirtualMachine golden/db; ${first}`,
  },
  'a volume that was released': { object: volume('Released', { namespace: 'golden', name: 'root' }) },
  'a volume of nobody': { object: volume('Bound') },
  'the definition of VMs': {
    object: definition('virtualmachines.kubevirt.io'),
    want: `CustomResourceDefinition "virtualmachines.kubevirt.io" cannot be deleted: it defines the protected VirtualMachine blue/api, golden/db, golden/web and others; ${first}`,
  },
  'the definition of identity records, whose VMs would lose their addresses': {
    object: definition('virtualmachineidentities.identity.selfsame.io'),
    want: `CustomResourceDefinition "virtualmachineidentities.identity.selfsame.io" cannot be deleted: it defines the identity record of the protected VirtualMachine blue/api, golden/db, golden/web and others; ${first}`,
  },
  'another definition': { object: definition('virtualmachines.example.com') },
  'another kind': { object: { kind: 'ConfigMap', metadata: { namespace: 'golden', name: 'root' } } },
  'a kind by the name of what all objects have': { object: { kind: 'toString', metadata: { name: 'golden' } } },
};

describe('a live look before a delete', () => {
  for (const [name, { object, user = 'alice', want }] of Object.entries(looks)) {
    test(`${want === undefined ? 'allows' : 'refuses'}: ${name}`, async () => {
      const request = { ...ASKED, operation: 'DELETE', user, oldObject: object as KubeObject } as const;
      assert.deepEqual(await reviewProtectedDelete(request, lookup), want === undefined ? {} : { forbidden: want });
    });
  }

  test('asks only where something is deleted', async () => {
    const never: ProtectionLookup = { protectedVms: () => Promise.reject(new Error('nobody was to ask')) };
    const object = namespace('golden') as KubeObject;
    const request = { ...ASKED, operation: 'UPDATE', user: 'alice', object, oldObject: object } as const;
    assert.deepEqual(await reviewProtectedDelete(request, never), {});
  });

  test('never asks for all that there are', async () => {
    const limits: number[] = [];
    const counting: ProtectionLookup = {
      protectedVms: async ({ limit }) => {
        limits.push(limit);
        return [];
      },
    };
    for (const object of [
      namespace('golden'),
      claim('golden', 'root'),
      volume('Bound', { namespace: 'golden', name: 'root' }),
      definition('virtualmachines.kubevirt.io'),
    ]) {
      await reviewProtectedDelete(
        { ...ASKED, operation: 'DELETE', user: '', oldObject: object as KubeObject },
        counting,
      );
    }
    assert.deepEqual(limits, [20, 500, 500, 20]);
  });
});
