import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { UPLOAD_ANNOTATION, type DiskVerb } from '#api/storage/disk-stream.ts';
import { LOCAL_PROVISIONER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { formatStorageSize } from '#api/storage/storage-size.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import {
  canBind,
  checkUpload,
  findDiskClaim,
  findVolumeError,
  pickNode,
  pickVolumeNode,
  soleDataNodeOf,
} from '#subresources/decide-disk.ts';

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

const GIB = 1024 ** 3;
/** A node with storage of this size, for volumes of its own; shared volumes can be twice as large. */
const aSizedNode = (name: string, gib: number, spec: object = {}) => {
  const node = aNode(name, 'True', spec);
  const annotations = formatStorageSize({ nodeBytes: gib * GIB, sharedBytes: 2 * gib * GIB });
  return { ...node, metadata: { ...node.metadata, annotations } };
};
const aClass = (name: string, more: object = {}) =>
  ({ metadata: { ...meta, name }, provisioner: LOCAL_PROVISIONER, ...more }) as Stored<StorageClass>;
const markedAs = (key: string) => ({ metadata: { ...meta, name: 'default', annotations: { [key]: 'true' } } });
const LOCAL = aClass('local');
const SHARED = aClass('shared', { parameters: { scope: 'shared' } });
const NODES = [aSizedNode('a', 10), aSizedNode('b', 100)];

interface ClaimCase {
  readonly storageClass?: string;
  readonly storage?: string;
  readonly accessMode?: string;
  readonly selected?: string;
  readonly requiredNode?: string;
  readonly classes?: readonly Stored<StorageClass>[];
  readonly nodes?: readonly Stored<Node>[];
}
const aUploadClaim = ({ storageClass, storage = '1Gi', accessMode = 'ReadWriteOnce', selected }: ClaimCase) =>
  ({
    metadata: {
      ...meta,
      namespace: 'lab',
      name: 'disk',
      annotations: { ...(selected !== undefined && { [SELECTED_NODE]: selected }) },
    },
    spec: { storageClassName: storageClass, accessModes: [accessMode], resources: { requests: { storage } } },
  }) as unknown as Stored<PersistentVolumeClaim>;

const volumeCases: Record<string, ClaimCase & { readonly want: string | undefined }> = {
  'a class that does not exist': {
    storageClass: 'nosuch',
    want: 'its storage class "nosuch" does not exist; choose one of local, shared',
  },
  'no class and no default class': {
    want: 'it has no storage class, and there is no default class; choose one of local, shared',
  },
  'no class, which excludes the default class': {
    storageClass: '',
    want: 'it excludes storage classes, and there is no volume without one; choose one of local, shared',
  },
  'no class yet, which gets the default class': {
    classes: [LOCAL, aClass('default', markedAs('storageclass.kubernetes.io/is-default-class'))],
    want: undefined,
  },
  'no class yet, which gets a default class with the old annotation': {
    classes: [LOCAL, aClass('default', markedAs('storageclass.beta.kubernetes.io/is-default-class'))],
    want: undefined,
  },
  'no class yet, and more storage than the default class can provide': {
    classes: [aClass('default', markedAs('storageclass.kubernetes.io/is-default-class'))],
    storage: '1Ti',
    want: 'StorageClass "default" cannot provide its volume: it requests 1Ti, but no node can hold more than 100Gi; request less, or add storage',
  },
  'no class at all': {
    storageClass: 'nosuch',
    classes: [],
    want: 'its storage class "nosuch" does not exist; there is none; create one',
  },
  'more storage than any node has': {
    storageClass: 'local',
    storage: '1Ti',
    want: 'StorageClass "local" cannot provide its volume: it requests 1Ti, but no node can hold more than 100Gi; request less, or add storage',
  },
  'more storage than the selected node has': {
    storageClass: 'local',
    storage: '50Gi',
    selected: 'a',
    want: 'StorageClass "local" cannot provide its volume: it requests 50Gi, but node a can hold at most 10Gi; request less, or add storage',
  },
  'more storage than the node of the other disks has': {
    storageClass: 'local',
    storage: '50Gi',
    requiredNode: 'a',
    want: 'StorageClass "local" cannot provide its volume: it requests 50Gi, but node a can hold at most 10Gi; request less, or add storage',
  },
  'more storage than the shared storage has': {
    storageClass: 'shared',
    storage: '1Ti',
    want: 'StorageClass "shared" cannot provide its volume: it requests 1Ti, but the shared storage can hold at most 200Gi; request less, or add storage',
  },
  'storage that one node has': { storageClass: 'local', storage: '50Gi', want: undefined },
  'an access mode that its class does not provide': {
    storageClass: 'local',
    accessMode: 'ReadWriteMany',
    want: 'StorageClass "local" keeps a volume on one node and cannot provide ReadWriteMany; use a class with scope "shared"',
  },
  'a class of another provisioner': {
    storageClass: 'nfs',
    storage: '1Ti',
    classes: [aClass('nfs', { provisioner: 'example.com/nfs' })],
    want: undefined,
  },
};
for (const [title, { want, requiredNode, ...given }] of Object.entries(volumeCases)) {
  test(`a volume for a claim with ${title}`, () => {
    const { classes = [SHARED, LOCAL], nodes = NODES } = given;
    assert.equal(findVolumeError({ claim: aUploadClaim(given), classes, nodes, requiredNode }), want);
  });
}

test('a volume gets the first node that can hold it', () => {
  const pick = (given: ClaimCase, nodes = NODES) =>
    pickVolumeNode({ claim: aUploadClaim(given), classes: [LOCAL, SHARED], nodes });
  assert.equal(pick({ storageClass: 'local' }), 'a');
  assert.equal(pick({ storageClass: 'local', storage: '50Gi' }), 'b');
  assert.equal(pick({ storageClass: 'shared', storage: '50Gi' }), 'a');
  const cordoned = [aSizedNode('a', 10), aSizedNode('b', 100, { unschedulable: true })];
  assert.equal(pick({ storageClass: 'local', storage: '50Gi' }, cordoned), undefined);
});

const manualVolumes: Record<string, { storageClass?: string; claimRef?: object; want: boolean }> = {
  'a volume that an administrator created': { storageClass: 'nosuch', want: true },
  'a volume that is reserved for the claim': {
    storageClass: 'nosuch',
    claimRef: { namespace: 'lab', name: 'disk' },
    want: true,
  },
  'a volume of another claim': {
    storageClass: 'nosuch',
    claimRef: { namespace: 'lab', name: 'other' },
    want: false,
  },
  'a volume of another class': { storageClass: 'manual', want: false },
};
for (const [title, { want, ...spec }] of Object.entries(manualVolumes)) {
  test(`a claim can be bound: ${title}`, () => {
    const { storageClass: storageClassName, claimRef } = spec;
    const volume = { metadata: meta, spec: { storageClassName, claimRef } } as Stored<PersistentVolume>;
    assert.equal(canBind(aUploadClaim({ storageClass: 'nosuch' }), volume), want);
  });
}
