import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { UPLOAD_ANNOTATION, type DiskVerb } from '#api/storage/disk-stream.ts';
import { VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { findClassError, findDiskClaim, soleDataNodeOf, pickNode, checkUpload } from '#subresources/decide-disk.ts';

const meta = { name: 'db', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
const aVm = (more: { status?: object; metadata?: object; spec?: object } = {}) =>
  ({
    metadata: { ...meta, ...more.metadata },
    spec: {
      runStrategy: 'Halted',
      template: {
        spec: {
          domain: {},
          volumes: [
            { name: 'root', persistentVolumeClaim: { claimName: 'db-root' } },
            { name: 'scratch', emptyDisk: { capacity: '1Gi' } },
          ],
        },
      },
      ...more.spec,
    },
    status: more.status,
  }) as unknown as Stored<VirtualMachine>;
const aVmi = (phase: string, owner = 'u') =>
  ({
    metadata: { name: 'db', ownerReferences: [{ kind: 'VirtualMachine', name: 'db', uid: owner, controller: true }] },
    status: { phase },
  }) as unknown as VirtualMachineInstance;

interface Case {
  verb?: DiskVerb;
  vm?: Stored<VirtualMachine>;
  vmi?: VirtualMachineInstance;
  volume?: string;
  state?: Stored<PersistentVolumeClaim>;
  want: string;
}
const aState = (labels: object) =>
  ({ metadata: { ...meta, name: 'the-state', labels } }) as Stored<PersistentVolumeClaim>;
const STATE = { volume: 'persistent-state-for-this-vm', state: aState({ 'persistent-state-for': 'db' }) };
const cases: Record<string, Case> = {
  'a disk of a stopped VM': { want: 'db-root' },
  'a disk of a VM whose instance has ended': { vmi: aVmi('Succeeded'), want: 'db-root' },
  'a disk of a VM whose name has an instance of another owner': { vmi: aVmi('Running', 'other'), want: 'db-root' },
  'the persistent state of a stopped VM': { ...STATE, want: 'the-state' },
  'the persistent state of a running VM': {
    ...STATE,
    vmi: aVmi('Running'),
    want: '409 VM is running; stop it with "virtctl stop", or restore a snapshot of it to a new VM and export that',
  },
  'persistent state that the VM does not have': {
    ...STATE,
    state: undefined,
    want: '404 persistentvolumeclaims "persistent-state-for-this-vm" not found',
  },
  'persistent state in a claim without the label': {
    ...STATE,
    state: aState({}),
    want: '409 it lacks the label persistent-state-for: db',
  },
  'no volume': { volume: '', want: '400 exportdisk needs the name of a volume: ?volume=NAME' },
  'a volume that the VM does not have': { volume: 'x', want: '400 VM has no volume "x"' },
  'a volume without a claim': {
    volume: 'scratch',
    want: '400 volume "scratch" is not a PersistentVolumeClaim: it has no persistent content',
  },
  'a running VM': {
    vmi: aVmi('Running'),
    want: '409 VM is running; stop it with "virtctl stop", or restore a snapshot of it to a new VM and export that',
  },
  'a VM that starts': {
    vmi: aVmi('Scheduling'),
    want: '409 VM is running; stop it with "virtctl stop", or restore a snapshot of it to a new VM and export that',
  },
  'an import into a running VM': { verb: 'importdisk', vmi: aVmi('Running'), want: '409 VM is running' },
  'an import': { verb: 'importdisk', want: 'db-root' },
  'an import into a VM that is not halted': {
    verb: 'importdisk',
    vm: aVm({ spec: { runStrategy: 'Always' } }),
    want: '409 VM has the run strategy Always; set it to Halted first',
  },
  'an export of a VM that is not halted': { vm: aVm({ spec: { runStrategy: 'Always' } }), want: 'db-root' },
  'an export while a snapshot is taken': { vm: aVm({ status: { snapshotInProgress: 's' } }), want: 'db-root' },
  'an import while a snapshot is taken': {
    verb: 'importdisk',
    vm: aVm({ status: { snapshotInProgress: 's' } }),
    want: '409 Cannot update vm disks or volumes until snapshot "s" completes',
  },
  'an export during a restore': {
    vm: aVm({ status: { restoreInProgress: 'r' } }),
    want: '409 Cannot update VM template until restore "r" completes',
  },
  'a VM under deletion': {
    vm: aVm({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    want: '409 VM is being deleted',
  },
};
for (const [title, { verb = 'exportdisk', vm = aVm(), vmi, volume = 'root', state, want }] of Object.entries(cases)) {
  test(`decides on ${title}`, () => {
    const answer = findDiskClaim({ verb, vm, vmi, volume, state });
    if (!(answer instanceof ApiError)) return assert.equal(answer.claim, want);
    assert.match(
      `${answer.code} ${answer.message}`,
      new RegExp(`^${want.slice(0, 4)}.*${RegExp.escape(want.slice(4))}$`),
    );
  });
}

test('only a claim that waits for content accepts an upload', () => {
  const aClaim = (annotations: object) => ({ metadata: { name: 'c', annotations } }) as PersistentVolumeClaim;
  assert.equal(checkUpload(aClaim({ [UPLOAD_ANNOTATION]: 'true' })), undefined);
  assert.equal(checkUpload(aClaim({ [UPLOAD_ANNOTATION]: 'false' }))?.code, 409);
  assert.equal(checkUpload(aClaim({}))?.code, 409);
  const isProtected = { [UPLOAD_ANNOTATION]: 'true', [PROTECTED_VMS_ANNOTATION]: 'db' };
  assert.match(checkUpload(aClaim(isProtected))?.message ?? '', /protected from deletion: db$/);
});

const holders: Record<string, { volume: object; want: string | undefined }> = {
  'the node of the annotation': {
    volume: { metadata: { annotations: { [VOLUME_NODE_ANNOTATION]: 'n1' } }, spec: { csi: {} } },
    want: 'n1',
  },
  'the node of the attributes': {
    volume: { metadata: {}, spec: { csi: { volumeAttributes: { node: 'n2', scope: 'node' } } } },
    want: 'n2',
  },
  'every node': {
    volume: {
      metadata: { annotations: { [VOLUME_NODE_ANNOTATION]: 'n1' } },
      spec: { csi: { volumeAttributes: { scope: 'shared' } } },
    },
    want: undefined,
  },
};
for (const [title, { volume, want }] of Object.entries(holders)) {
  test(`data of ${title}`, () => assert.equal(soleDataNodeOf(volume as PersistentVolume), want));
}

const aNode = (
  name: string,
  ready: string,
  spec: object = {},
  labels: object = { 'kubevirt.io/schedulable': 'true' },
) => ({ metadata: { name, labels }, spec, status: { conditions: [{ type: 'Ready', status: ready }] } }) as Stored<Node>;
const taintSpec = (key: string, effect: string) => ({ taints: [{ key, effect }] });

test('the first ready node is chosen', () => {
  const nodes = [
    aNode('a', 'False'),
    aNode('b', 'True', { unschedulable: true }),
    aNode('c', 'True', taintSpec('k', 'NoSchedule')),
    aNode('e', 'True', taintSpec('k', 'PreferNoSchedule')),
    aNode('d', 'True'),
  ];
  assert.equal(pickNode(nodes), 'd');
  assert.equal(pickNode(nodes.slice(0, 3)), undefined);
});

test('in an existing cluster one of our nodes is chosen, although it repels other pods', () => {
  const kubelet = aNode('a-kubelet', 'True', {}, {});
  assert.equal(pickNode([kubelet, aNode('host', 'True', taintSpec('selfsame.io/vms-only', 'NoSchedule'))]), 'host');
  assert.equal(pickNode([kubelet]), undefined);
});

const aManualVolume = (claimRef?: object) =>
  ({ metadata: meta, spec: { storageClassName: 'nosuch', claimRef } }) as Stored<PersistentVolume>;
const classCases: Record<
  string,
  { name?: string; classes?: string[]; volumes?: Stored<PersistentVolume>[]; want: string | undefined }
> = {
  'a class that does not exist': {
    name: 'nosuch',
    want: 'its storage class "nosuch" does not exist; choose one of local, shared',
  },
  'no class and no default class': {
    want: 'it has no storage class, and there is no default class; choose one of local, shared',
  },
  'no class yet, which gets the default class': { classes: ['local', 'default'], want: undefined },
  'no class yet, which gets a default class with the old annotation': { classes: ['local', 'old'], want: undefined },
  'no class at all': {
    name: 'nosuch',
    classes: [],
    want: 'its storage class "nosuch" does not exist; there is none; create one',
  },
  'a volume that an administrator created': { name: 'nosuch', volumes: [aManualVolume()], want: undefined },
  'a volume that is reserved for the claim': {
    name: 'nosuch',
    volumes: [aManualVolume({ namespace: 'lab', name: 'disk' })],
    want: undefined,
  },
  'a volume of another claim': {
    name: 'nosuch',
    volumes: [aManualVolume({ namespace: 'lab', name: 'other' })],
    want: 'its storage class "nosuch" does not exist; choose one of local, shared',
  },
};
for (const [title, { name, classes = ['shared', 'local'], volumes = [], want }] of Object.entries(classCases)) {
  test(`a claim with ${title}`, () => {
    const claim = { metadata: { namespace: 'lab', name: 'disk' }, spec: { storageClassName: name } };
    const known = classes.map((one) => {
      const annotations = {
        'storageclass.kubernetes.io/is-default-class': String(one === 'default'),
        'storageclass.beta.kubernetes.io/is-default-class': String(one === 'old'),
      };
      return { metadata: { ...meta, name: one, annotations } } as unknown as Stored<StorageClass>;
    });
    assert.equal(findClassError(claim as PersistentVolumeClaim, known, volumes), want);
  });
}
