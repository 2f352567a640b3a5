/** Tests the webhooks of the delete protection: the recorded annotations, and the refused deletes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { patchAnnotations } from '#admission/annotation-patch.ts';
import { reviewProtectedDelete, type ProtectionLookup } from '#admission/protected-deletes.ts';
import { recordProtection } from '#admission/protection-annotations.ts';
import { aVm } from '#api/validation/testing/valid-objects.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const BY = 'selfsame.io/delete-protection-by';
const AT = 'selfsame.io/delete-protection-at';
const REASON = 'selfsame.io/delete-protection-reason';
const REQUEST = { uid: 'u', namespace: '', name: '', dryRun: false, isReplace: false } as const;
const NOW = '2026-02-02T00:00:00Z';
const THEN = '2026-01-01T00:00:00Z';

type Annotations = Readonly<Record<string, unknown>> | null | undefined;

function vm(label: string | undefined, annotations?: Annotations): KubeObject {
  const labels = label === undefined ? undefined : { [LABEL]: label };
  return { kind: 'VirtualMachine', metadata: { name: 'db', labels, annotations } } as unknown as KubeObject;
}

interface AnnotationCase {
  readonly old?: KubeObject;
  readonly object: KubeObject;
  /** The annotations afterwards; absent: nothing is patched. */
  readonly want?: Annotations;
}

const eve = { [BY]: 'eve', [AT]: THEN };
const now = { [BY]: 'alice', [AT]: NOW };

const annotationCases: Record<string, AnnotationCase> = {
  'created with protection': { object: vm('true'), want: now },
  'created with protection and annotations': {
    object: vm('True', { a: 'b', [REASON]: 'gold' }),
    want: { a: 'b', [REASON]: 'gold', ...now },
  },
  'created with protection and null annotations': { object: vm('true', null), want: now },
  'created with protection and forged annotations': { object: vm('true', eve), want: now },
  'created without protection': { object: vm(undefined, { a: 'b' }) },
  'created without protection and with forged annotations': { object: vm('yes', { a: 'b', ...eve }), want: { a: 'b' } },
  'created without protection and with a reason': { object: vm(undefined, { [REASON]: 'later' }) },
  'labels of another type are left to the server': { object: { metadata: { labels: 3 } } as unknown as KubeObject },
  'annotations of another type are left to the server': { object: vm('true', 3 as unknown as Annotations) },
  'protection begins': { old: vm(undefined, { a: 'b' }), object: vm('true', { a: 'b' }), want: { a: 'b', ...now } },
  'protection begins again': { old: vm('false', eve), object: vm('true', eve), want: now },
  'protection begins after an invalid value': { old: vm('TRUE'), object: vm('True'), want: now },
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
  'the user is changed': { old: vm('true', eve), object: vm('true', { [BY]: 'bob', [AT]: THEN }), want: eve },
  'the time is changed': { old: vm('true', eve), object: vm('true', { [BY]: 'eve', [AT]: NOW }), want: eve },
  'the annotations are removed': { old: vm('true', eve), object: vm('true', { a: 'b' }), want: { a: 'b', ...eve } },
  'all annotations are removed': { old: vm('true', eve), object: vm('true'), want: eve },
  'annotations are forged if there were none': { old: vm(undefined), object: vm(undefined, eve), want: {} },
  'the reason is changed': {
    old: vm('true', { ...eve, [REASON]: 'a' }),
    object: vm('true', { ...eve, [REASON]: 'b' }),
  },
};

describe('records user and time', () => {
  for (const [name, { old, object, want }] of Object.entries(annotationCases)) {
    test(name, () => {
      const operation = old === undefined ? 'CREATE' : 'UPDATE';
      const request = { ...REQUEST, operation, user: 'alice', object, oldObject: old } as const;
      const patch = patchAnnotations(object, recordProtection(request, NOW));
      if (want === undefined) return assert.deepEqual(patch, []);
      const after = applyJsonPatch(object, patch) as KubeObject;
      assert.deepEqual(after.metadata.annotations, want);
      // A second review of the result changes nothing.
      const again = patchAnnotations(after, recordProtection({ ...request, object: after, oldObject: old }, NOW));
      assert.deepEqual(again, []);
    });
  }
});

const withDisk = (claimName: string) => ({
  spec: { template: { spec: { volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }] } } },
});

function aStoredVm(namespace: string, name: string, patch: object = {}): Stored<VirtualMachine> {
  const base = aVm(patch) as Stored<VirtualMachine>;
  return { ...base, metadata: { ...base.metadata, namespace, name, uid: `${name}-uid` } };
}

const DELETING = { metadata: { deletionTimestamp: THEN } };
const VMS = [
  aStoredVm('blue', 'api', withDisk('api-root')),
  aStoredVm('golden', 'db', withDisk('root')),
  aStoredVm('golden', 'web', withDisk('web-root')),
  aStoredVm('leaving', 'old', { ...DELETING, ...withDisk('root') }),
  ...['a', 'b', 'c', 'd', 'e'].map((name) => aStoredVm('many', name, withDisk('shared'))),
];

/** Like the API: returns the first VMs of one namespace or of all. */
const lookup: ProtectionLookup = {
  protectedVms: async ({ namespace, limit }) =>
    VMS.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace).slice(0, limit),
  vmsOfClaim: () => [],
  claimsOfVm: () => [],
};

interface DeleteCase {
  readonly object: { readonly kind: string; readonly metadata: object; readonly [field: string]: unknown };
  readonly user?: string;
  readonly vms?: ProtectionLookup;
  readonly want?: string;
}

const first = 'remove the label kubevirt.io/vm-delete-protection from them first (virtctl unprotect)';
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
const ownerMetadata = (uid: string, controller: boolean) => ({
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller }],
});

const deleteCases: Record<string, DeleteCase> = {
  'a namespace with protected VMs': {
    object: namespace('golden'),
    want: `Namespace "golden" cannot be deleted: it holds the protected VirtualMachine db, web; ${first}`,
  },
  'a namespace with many protected VMs': {
    object: namespace('many'),
    want: `Namespace "many" cannot be deleted: it holds the protected VirtualMachine a, b, c and others; ${first}`,
  },
  'a namespace without protected VMs': { object: namespace('empty') },
  'a namespace whose protected VM is being deleted': { object: namespace('leaving') },
  'a disk of a protected VM': {
    object: claim('golden', 'root'),
    want: `PersistentVolumeClaim "root" cannot be deleted: it is a disk of the protected VirtualMachine db; ${first}`,
  },
  'a disk of the same name in another namespace': { object: claim('blue', 'root') },
  'a disk of a VM that is being deleted': { object: claim('leaving', 'root') },
  'a claim that a protected VM controls': {
    object: claim('golden', 'state', ownerMetadata('db-uid', true)),
    want: `PersistentVolumeClaim "state" cannot be deleted: it is a disk of the protected VirtualMachine db; ${first}`,
  },
  'a claim that a protected VM owns without controlling it': {
    object: claim('golden', 'state', ownerMetadata('db-uid', false)),
  },
  'state of a protected VM without an owner': {
    object: claim('golden', 'kept', { labels: { 'persistent-state-for': 'db' } }),
    want: `PersistentVolumeClaim "kept" cannot be deleted: it is a disk of the protected VirtualMachine db; ${first}`,
  },
  'state of another VM without an owner': {
    object: claim('golden', 'kept', { labels: { 'persistent-state-for': 'dbx' } }),
  },
  'a claim of another owner': { object: claim('golden', 'state', ownerMetadata('x-uid', true)) },
  'a disk that a restore replaces': {
    object: claim('golden', 'root', { annotations: { 'selfsame.io/replaced-by': 'x' } }),
    user: 'system:serviceaccount:selfsame-system:restore-controller',
  },
  'a disk that no restore has marked as replaced, also for the restore controller': {
    object: claim('golden', 'root'),
    user: 'system:serviceaccount:selfsame-system:restore-controller',
    want: `PersistentVolumeClaim "root" cannot be deleted: it is a disk of the protected VirtualMachine db; ${first}`,
  },
  'a namespace, also for the restore controller': {
    object: namespace('blue'),
    user: 'system:serviceaccount:selfsame-system:restore-controller',
    want: `Namespace "blue" cannot be deleted: it holds the protected VirtualMachine api; ${first}`,
  },
  'a volume with a disk': {
    object: volume('Bound', { namespace: 'golden', name: 'root' }),
    want: `PersistentVolume "pv" cannot be deleted: it holds a disk of the protected VirtualMachine golden/db; ${first}`,
  },
  'a released volume': { object: volume('Released', { namespace: 'golden', name: 'root' }) },
  'a volume without a claim': { object: volume('Bound') },
  'the definition of VMs': {
    object: definition('virtualmachines.kubevirt.io'),
    want: `CustomResourceDefinition "virtualmachines.kubevirt.io" cannot be deleted: it defines the protected VirtualMachine blue/api, golden/db, golden/web and others; ${first}`,
  },
  'the definition of identity records': {
    object: definition('virtualmachineidentities.identity.selfsame.io'),
    want: `CustomResourceDefinition "virtualmachineidentities.identity.selfsame.io" cannot be deleted: it defines the identity record of the protected VirtualMachine blue/api, golden/db, golden/web and others; ${first}`,
  },
  'another definition': { object: definition('virtualmachines.example.com') },
  'another kind': { object: { kind: 'ConfigMap', metadata: { namespace: 'golden', name: 'root' } } },
  'a kind with a name of Object.prototype': { object: { kind: 'toString', metadata: { name: 'golden' } } },
};

describe('the webhook for deletes', () => {
  for (const [name, { object, user = 'alice', want }] of Object.entries(deleteCases)) {
    test(`${want === undefined ? 'allows' : 'refuses'} ${name}`, async () => {
      const request = { ...REQUEST, operation: 'DELETE', user, oldObject: object as KubeObject } as const;
      assert.deepEqual(await reviewProtectedDelete(request, lookup), want === undefined ? {} : { forbidden: want });
    });
  }

  test('reads no VMs unless an object is deleted', async () => {
    const never: ProtectionLookup = {
      protectedVms: () => Promise.reject(new Error('unexpected call')),
      vmsOfClaim: () => assert.fail('unexpected call'),
      claimsOfVm: () => assert.fail('unexpected call'),
    };
    const object = namespace('golden') as KubeObject;
    const request = { ...REQUEST, operation: 'UPDATE', user: 'alice', object, oldObject: object } as const;
    assert.deepEqual(await reviewProtectedDelete(request, never), {});
  });

  test('limits the number of VMs that it reads', async () => {
    const limits: number[] = [];
    const counting: ProtectionLookup = {
      protectedVms: async ({ limit }) => {
        limits.push(limit);
        return [];
      },
      vmsOfClaim: () => [],
      claimsOfVm: () => [],
    };
    for (const object of [
      namespace('golden'),
      claim('golden', 'root'),
      volume('Bound', { namespace: 'golden', name: 'root' }),
      definition('virtualmachines.kubevirt.io'),
    ]) {
      await reviewProtectedDelete(
        { ...REQUEST, operation: 'DELETE', user: '', oldObject: object as KubeObject },
        counting,
      );
    }
    assert.deepEqual(limits, [20, 500, 500, 20]);
  });
});

const RUNNING = { status: { created: true } };
const DISK_OF_RUNNING =
  'PersistentVolumeClaim "root" is a disk of VirtualMachine "db": the claim and its data are deleted when the VM stops, and until then the VM cannot be migrated, restarted or snapshotted';

interface WarningCase {
  readonly vms: readonly Stored<VirtualMachine>[];
  readonly metadata?: object;
  readonly user?: string;
  readonly want: readonly string[];
}

const warningCases: Record<string, WarningCase> = {
  'the disk of a running VM': {
    vms: [aStoredVm('ns', 'db', { ...RUNNING, ...withDisk('root') })],
    want: [DISK_OF_RUNNING],
  },
  'the disk of a stopped VM': {
    vms: [aStoredVm('ns', 'db', withDisk('root'))],
    want: ['PersistentVolumeClaim "root" is a disk of VirtualMachine "db", which cannot start without it'],
  },
  'the persistent state of a running VM': {
    vms: [aStoredVm('ns', 'db', { ...RUNNING, ...withDisk('other') })],
    want: [
      'PersistentVolumeClaim "root" is the persistent state of VirtualMachine "db": the claim and its data are deleted when the VM stops; the next start begins with empty state',
    ],
  },
  'a disk of many VMs, naming three of them': {
    vms: ['a', 'b', 'c', 'd'].map((name) => aStoredVm('ns', name, withDisk('root'))),
    want: ['a', 'b', 'c'].map(
      (name) => `PersistentVolumeClaim "root" is a disk of VirtualMachine "${name}", which cannot start without it`,
    ),
  },
  'not a disk of a VM that is being deleted': {
    vms: [aStoredVm('ns', 'db', { ...DELETING, ...withDisk('root') })],
    want: [],
  },
  'not a claim that is already being deleted': {
    vms: [aStoredVm('ns', 'db', withDisk('root'))],
    metadata: { deletionTimestamp: THEN },
    want: [],
  },
  'not one of our own components': {
    vms: [aStoredVm('ns', 'db', withDisk('root'))],
    user: 'system:serviceaccount:selfsame-system:restore-controller',
    want: [],
  },
  'not the garbage collector': {
    vms: [aStoredVm('ns', 'db', withDisk('root'))],
    user: 'system:serviceaccount:kube-system:generic-garbage-collector',
    want: [],
  },
  'no claim without a VM': { vms: [], want: [] },
};

describe('the deletion of a claim warns about', () => {
  for (const [sentence, { vms, metadata, user = 'alice', want }] of Object.entries(warningCases)) {
    test(sentence, async () => {
      const oldObject = claim('ns', 'root', metadata) as KubeObject;
      const request = { ...REQUEST, operation: 'DELETE', user, oldObject } as const;
      const decision = await reviewProtectedDelete(request, { ...lookup, vmsOfClaim: () => vms });
      assert.deepEqual(decision, want.length === 0 ? {} : { warnings: want });
    });
  }
});

describe('the deletion of a VM warns about', () => {
  const restored = (name: string, uid = 'db-uid', annotations: object = { 'restore.kubevirt.io/name': 'back' }) =>
    claim('ns', name, { ...ownerMetadata(uid, true), annotations }) as unknown as Stored<PersistentVolumeClaim>;
  const isDeletedToo = (names: string) =>
    `PersistentVolumeClaim ${names} came to VirtualMachine "db" with a restore and is deleted with it, unless the VM is deleted with --cascade=orphan`;
  const diskCases: Record<string, { claims: readonly Stored<PersistentVolumeClaim>[]; user?: string; want?: string }> =
    {
      'restored disks': { claims: [restored('root')], want: isDeletedToo('"root"') },
      'many restored disks, naming three of them': {
        claims: ['a', 'b', 'c', 'd'].map((name) => restored(name)),
        want: isDeletedToo('"a", "b", "c" and others'),
      },
      'no other disks of its own': { claims: [restored('root', 'db-uid', {})] },
      'no disks of another owner': { claims: [restored('root', 'other-uid')] },
      'nothing if a component deletes it': {
        claims: [restored('root')],
        user: 'system:serviceaccount:kube-system:namespace-controller',
      },
    };
  for (const [sentence, { claims, user = 'alice', want }] of Object.entries(diskCases)) {
    test(sentence, async () => {
      const request = { ...REQUEST, operation: 'DELETE', user, oldObject: aStoredVm('ns', 'db') } as const;
      const decision = await reviewProtectedDelete(request, { ...lookup, claimsOfVm: () => claims });
      assert.deepEqual(decision, want === undefined ? {} : { warnings: [want] });
    });
  }
});
