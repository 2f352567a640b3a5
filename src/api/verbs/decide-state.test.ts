/**
 * Tests the table of docs/persistent-state.md: when a claim can be adopted by, or released from, the VM that it is
 * marked for.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decideVerb } from '#api/verbs/decide-verb.ts';
import { findStateClaim, stateOwnerOf } from '#api/storage/persistent-state.ts';
import { listConflictingClaims } from '#api/storage/state-conflict.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { ObjectMeta, OwnerReference, Stored } from '#kube/meta.ts';
import type { VerbDecision, VerbWorld, StateWorld } from '#api/verbs/verb.ts';

const NOW = '2026-01-01T00:00:00Z';
const LEGACY = 'persistent-state-for-db';
const identity = (name: string, metadata: ObjectMeta = {}) => ({
  ...{ namespace: 'ns', name, uid: `${name}-uid`, resourceVersion: '7', creationTimestamp: NOW },
  ...metadata,
});

function aVm(
  name: string,
  { status, metadata, disk }: { status?: VmStatus; metadata?: ObjectMeta; disk?: string } = {},
) {
  const volumes = disk === undefined ? [] : [{ name: 'root', persistentVolumeClaim: { claimName: disk } }];
  const vm: Stored<VirtualMachine> = {
    ...{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: identity(name, metadata) },
    spec: { template: { spec: { domain: {}, volumes } } },
    ...(status && { status }),
  };
  return vm;
}

function aVmi(
  vm: Stored<VirtualMachine> | string,
  status: VmiStatus = { phase: 'Running' },
): Stored<VirtualMachineInstance> {
  const isAlone = typeof vm === 'string';
  const name = isAlone ? vm : vm.metadata.name;
  const metadata = identity(name, {
    uid: `${name}-vmi`,
    ...(isAlone ? {} : { ownerReferences: [vmOwnerReference(vm)] }),
  });
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata, spec: { domain: {} }, status };
}

const ref = (kind: string, name: string, more: Partial<OwnerReference> = {}): OwnerReference[] => [
  { apiVersion: 'v1', kind, name, uid: `${name}-uid`, controller: true, ...more },
];
const BACKUP = { ownerReferences: ref('ConfigMap', 'backup') };
const MARKED = { labels: { 'persistent-state-for': 'db' }, annotations: { [LEGACY]: 'true', note: 'theirs' } };

function aClaim(name: string, metadata: ObjectMeta): Stored<PersistentVolumeClaim> {
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: identity(name, metadata), spec: {} };
}

function aPod(claimName: string, metadata: ObjectMeta = {}, phase: 'Running' | 'Succeeded' = 'Running'): Stored<Pod> {
  const volumes = [{ name: 'vm-state', persistentVolumeClaim: { claimName } }];
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: identity('user', metadata) },
    spec: { containers: [], volumes },
    status: { phase },
  };
}

const DB = aVm('db');
const WEB = aVm('web');
const TAKEN = aClaim('taken', { ...MARKED, ...BACKUP });

interface Scene extends Partial<StateWorld> {
  readonly vm?: Stored<VirtualMachine>;
  readonly vmi?: Stored<VirtualMachineInstance>;
  readonly claim?: Stored<PersistentVolumeClaim>;
  /** The uid in the request, if it is not that of the claim. */
  readonly uid?: string;
}

function worldOf({ vm = DB, vmi, claim = TAKEN, uid, ...more }: Scene): VerbWorld {
  const state = { claims: [claim], pods: [], vms: [vm], vmis: vmi ? [vmi] : [], ...more };
  const stateClaim = { name: claim.metadata.name, uid: uid ?? claim.metadata.uid };
  return { name: 'db', vm, ...(vmi && { vmi }), state, options: { stateClaim } };
}

/** Returns the claim after the verb, or the refusal. */
function applyDecision(
  answer: VerbDecision,
  claim: Stored<PersistentVolumeClaim>,
): Stored<PersistentVolumeClaim> | string {
  if ('denied' in answer) return `${answer.denied.code} ${answer.denied.message}`;
  const [step, ...more] = answer.allowed;
  assert.deepEqual(more, []);
  if (step === undefined) return claim;
  assert.ok(step.do === 'patchClaim' && step.name === claim.metadata.name && step.uid === claim.metadata.uid);
  return applyJsonPatch(claim, step.patch) as Stored<PersistentVolumeClaim>;
}

interface Case extends Scene {
  /** The refusal; absent if the verb succeeds. */
  readonly adopt?: RegExp;
  readonly release?: RegExp;
}

const bothRefused = (message: RegExp) => ({ adopt: message, release: message });

const cases: Record<string, Case> = {
  'another object owns it': {},
  'another object owns it without controlling it': {
    claim: aClaim('taken', { ...MARKED, ownerReferences: ref('ConfigMap', 'x', { controller: false }) }),
  },
  'an earlier VM of the same name owns it': {
    claim: aClaim('taken', { ...MARKED, ownerReferences: [vmOwnerReference(aVm('db', { metadata: { uid: 'old' } }))] }),
  },
  'a deleted VM owns it': { claim: aClaim('taken', { ...MARKED, ownerReferences: [vmOwnerReference(WEB)] }) },
  'a deleted VM owns it, and it is marked for that VM': {
    claim: aClaim('taken', {
      ...{ ownerReferences: [vmOwnerReference(WEB)], labels: { 'persistent-state-for': 'web' } },
      annotations: { [LEGACY]: 'true', 'persistent-state-for-web': 'true' },
    }),
  },
  'another VM owns it and does not use it': {
    claim: aClaim('taken', { ...MARKED, ownerReferences: [vmOwnerReference(WEB)] }),
    vms: [DB, WEB],
  },
  'another VM owns it and has its state in it': {
    claim: aClaim('taken', {
      ...{ ownerReferences: [vmOwnerReference(WEB)], labels: { 'persistent-state-for': 'web' } },
      annotations: { [LEGACY]: 'true' },
    }),
    vms: [DB, WEB],
    adopt: /^409 cannot hand over .*"taken": it holds the persistent state of VirtualMachine "web"$/,
  },
  'another object owns it, and it is marked for another VM': {
    claim: aClaim('taken', { ...MARKED, ...BACKUP, labels: { 'persistent-state-for': 'web' } }),
    vms: [DB, WEB],
    adopt: /it is marked for VirtualMachine "web", too; release it there first$/,
  },
  'another VM owns it and uses it as a disk': {
    claim: aClaim('taken', { ...MARKED, ownerReferences: [vmOwnerReference(WEB)] }),
    vms: [DB, aVm('web', { disk: 'taken' })],
    adopt: /it is a disk of VirtualMachine "web"$/,
  },
  'an instance without a VM has its state in it': {
    claim: aClaim('taken', { ...MARKED, ownerReferences: ref('VirtualMachineInstance', 'lone', { uid: 'lone-vmi' }) }),
    vmis: [
      aVmi('lone', {
        phase: 'Running',
        volumeStatus: [
          { name: 'persistent-state-for-this-vm', target: '', persistentVolumeClaimInfo: { claimName: 'taken' } },
        ],
      }),
    ],
    adopt: /it holds the persistent state of VirtualMachineInstance "lone"$/,
  },
  'a pod uses it': { pods: [aPod('taken')], adopt: /Pod "user" uses it$/ },
  'a pod that has ended used it': { pods: [aPod('taken', {}, 'Succeeded')] },
  'a pod uses another claim': { pods: [aPod('root')] },
  'the guest of this VM uses it': {
    vmi: aVmi(DB),
    pods: [aPod('taken', { ownerReferences: ref('VirtualMachineInstance', 'db', { uid: 'db-vmi' }) })],
  },
  'it has no owner and is marked for a deleted VM': {
    claim: aClaim('taken', { ...MARKED, labels: { 'persistent-state-for': 'web' } }),
  },
  'it has no owner and is marked for another VM': {
    claim: aClaim('taken', { ...MARKED, labels: { 'persistent-state-for': 'web' } }),
    vms: [DB, WEB],
    adopt: /it is marked for VirtualMachine "web", too; release it there first$/,
  },
  'another object owns it, and it has the legacy name': { claim: aClaim(LEGACY, BACKUP) },
  'a migration copies data into it': {
    claim: aClaim('taken', { ...BACKUP, labels: { ...MARKED.labels, 'kubevirt.io/migrationName': 'm1' } }),
    adopt: /migration "m1" is copying data into it$/,
  },
  'a restore owns it': {
    claim: aClaim('taken', {
      ...MARKED,
      ownerReferences: ref('VirtualMachineRestore', 'r1', { apiVersion: 'snapshot.kubevirt.io/v1beta1' }),
    }),
    ...bothRefused(/VirtualMachineRestore "r1" has it; wait until the restore is finished$/),
  },
  'a restore holds the VM': {
    vm: aVm('db', { status: { restoreInProgress: 'r1' } }),
    ...bothRefused(/^409 Cannot update VM template until restore "r1" completes$/),
  },
  'a snapshot holds the VM': {
    vm: aVm('db', { status: { snapshotInProgress: 's1' } }),
    ...bothRefused(/^409 Cannot update vm disks or volumes until snapshot "s1" completes$/),
  },
  'this VM has its state in another claim': {
    claims: [TAKEN, aClaim('own', { ...MARKED, ownerReferences: [vmOwnerReference(DB)] })],
    adopt: /the VM has its state in PersistentVolumeClaim "own"$/,
  },
  'this VM owns it': {
    claim: aClaim('taken', { ...MARKED, ownerReferences: [vmOwnerReference(DB)] }),
    release: /^409 cannot release PersistentVolumeClaim "taken": it belongs to this VM$/,
  },
  'it has no owner and is marked for this VM only': {
    claim: aClaim('taken', MARKED),
    adopt: /the VM has its state in PersistentVolumeClaim "taken"$/,
    release: /it has no other owner, so the VM can use it already$/,
  },
  'it has no mark': { claim: aClaim('root', BACKUP), ...bothRefused(/it is not marked as the state of this VM$/) },
  'it has the legacy name and is the state of another VM': {
    claim: aClaim(LEGACY, { ...BACKUP, labels: { 'persistent-state-for': 'web' } }),
    ...bothRefused(/it is the state of another VM$/),
  },
  'another claim supersedes it': {
    claims: [
      TAKEN,
      aClaim('next', { ...BACKUP, annotations: { [LEGACY]: 'true', 'selfsame.io/supersedes': 'taken-uid' } }),
    ],
    ...bothRefused(/another claim has taken its place$/),
  },
  'it belongs to another VM, and its current name looks like the legacy name': {
    vm: aVm('db-x4b2z'),
    claim: aClaim('persistent-state-for-db-x4b2z', { ownerReferences: [vmOwnerReference(DB)] }),
    vms: [DB, aVm('db-x4b2z')],
    ...bothRefused(/it is the state of another VM$/),
  },
  'it is being deleted': {
    claim: aClaim('taken', { ...MARKED, ...BACKUP, deletionTimestamp: NOW }),
    ...bothRefused(/it is being deleted$/),
  },
  'the VM is being deleted': {
    vm: aVm('db', { metadata: { deletionTimestamp: NOW } }),
    adopt: /VM is being deleted$/,
  },
  'the request has another uid': {
    uid: 'another',
    ...bothRefused(/^409 PersistentVolumeClaim "taken" has the uid taken-uid, not another$/),
  },
};

for (const verb of ['adopt', 'release'] as const) {
  describe(verb === 'adopt' ? 'a claim is adopted if' : 'a mark is removed if', () => {
    for (const [sentence, scene] of Object.entries(cases)) {
      const refusal = scene[verb];
      test(`${sentence}${refusal ? ': refused' : ''}`, () => {
        const { claim = TAKEN, vm = DB } = scene;
        const left = applyDecision(decideVerb(`${verb}state`, worldOf(scene)), claim);
        if (refusal !== undefined) return assert.match(typeof left === 'string' ? left : 'allowed', refusal);
        assert.ok(typeof left !== 'string', JSON.stringify(left));
        const owner = stateOwnerOf(vm);
        assert.deepEqual(listConflictingClaims([left], owner), []);
        const found = findStateClaim([left], owner);
        if (verb === 'adopt') {
          assert.equal(found?.metadata.uid, left.metadata.uid);
          assert.deepEqual(left.metadata.ownerReferences, [vmOwnerReference(vm)]);
        } else {
          assert.equal(found, undefined);
          assert.deepEqual(left.metadata.ownerReferences, claim.metadata.ownerReferences);
        }
        assert.equal(left.metadata.annotations?.['note'], claim.metadata.annotations?.['note']);
      });
    }
  });
}

test('an adopted claim is marked for this VM only', () => {
  const claim = aClaim('taken', {
    ...{ ownerReferences: [vmOwnerReference(WEB)], labels: { 'persistent-state-for': 'web', app: 'x' } },
    annotations: { [LEGACY]: 'true', 'persistent-state-for-web': 'true' },
  });
  const left = applyDecision(decideVerb('adoptstate', worldOf({ claim })), claim);
  assert.ok(typeof left !== 'string');
  assert.deepEqual(left.metadata.labels, { 'persistent-state-for': 'db', app: 'x' });
  assert.deepEqual(left.metadata.annotations, { [LEGACY]: 'true' });
});

test('releasing keeps the marks of other VMs', () => {
  const claim = aClaim('taken', {
    labels: { 'persistent-state-for': 'web' },
    annotations: { [LEGACY]: 'true', 'persistent-state-for-web': 'true' },
  });
  const left = applyDecision(decideVerb('releasestate', worldOf({ claim, vms: [DB, WEB] })), claim);
  assert.ok(typeof left !== 'string');
  assert.deepEqual(left.metadata.labels, { 'persistent-state-for': 'web' });
  assert.deepEqual(left.metadata.annotations, { 'persistent-state-for-web': 'true' });
  assert.equal(findStateClaim([left], stateOwnerOf(WEB))?.metadata.name, 'taken');
});

test('the patch fails if the claim has changed', () => {
  const answer = decideVerb('adoptstate', worldOf({}));
  assert.ok('allowed' in answer);
  const [step] = answer.allowed;
  assert.ok(step?.do === 'patchClaim');
  assert.throws(() => applyJsonPatch({ ...TAKEN, metadata: { ...TAKEN.metadata, resourceVersion: '8' } }, step.patch));
});

test('a missing VM or claim is refused', () => {
  for (const verb of ['adoptstate', 'releasestate'] as const) {
    const { vm: _, ...none } = worldOf({});
    assert.equal(applyDecision(decideVerb(verb, none), TAKEN), '404 not found');
    const world = worldOf({ claims: [] });
    assert.equal(applyDecision(decideVerb(verb, world), TAKEN), '409 PersistentVolumeClaim "taken" does not exist');
  }
});
