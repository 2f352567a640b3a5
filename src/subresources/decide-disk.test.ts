import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { UPLOAD_ANNOTATION, type DiskVerb } from '#api/disk-stream.ts';
import { VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { claimToOpen, holderOf, pickNode, uploadFault } from '#subresources/decide-disk.ts';

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
  'a disk of one that has ended': { vmi: aVmi('Succeeded'), want: 'db-root' },
  'a disk of one beside a stranger of its name': { vmi: aVmi('Running', 'other'), want: 'db-root' },
  'the persistent state of a stopped VM': { ...STATE, want: 'the-state' },
  'the persistent state of a running VM': {
    ...STATE,
    vmi: aVmi('Running'),
    want: '409 VM is running: stop it, or take a snapshot and export that',
  },
  'the persistent state that it has not': {
    ...STATE,
    state: undefined,
    want: '404 persistentvolumeclaims "persistent-state-for-this-vm" not found',
  },
  'the persistent state in a claim that could be a disk': {
    ...STATE,
    state: aState({}),
    want: '409 it has no label (persistent-state-for: db)',
  },
  'no volume': { volume: '', want: '400 exportdisk needs the name of a volume: ?volume=NAME' },
  'a volume that it has not': { volume: 'x', want: '400 VM has no volume "x"' },
  'a volume without a claim': {
    volume: 'scratch',
    want: '400 volume "scratch" is not of a PersistentVolumeClaim: it has no content to keep',
  },
  'a running VM': { vmi: aVmi('Running'), want: '409 VM is running: stop it, or take a snapshot and export that' },
  'a VM that starts': {
    vmi: aVmi('Scheduling'),
    want: '409 VM is running: stop it, or take a snapshot and export that',
  },
  'an import into a running VM': { verb: 'importdisk', vmi: aVmi('Running'), want: '409 VM is running' },
  'an import': { verb: 'importdisk', want: 'db-root' },
  'an import into one that is to run': {
    verb: 'importdisk',
    vm: aVm({ spec: { runStrategy: 'Always' } }),
    want: '409 VM is to run (Always); expected Halted',
  },
  'an export of one that is to run': { vm: aVm({ spec: { runStrategy: 'Always' } }), want: 'db-root' },
  'an export while a snapshot is taken': { vm: aVm({ status: { snapshotInProgress: 's' } }), want: 'db-root' },
  'an import while a snapshot is taken': {
    verb: 'importdisk',
    vm: aVm({ status: { snapshotInProgress: 's' } }),
    want: '409 Cannot update vm disks or volumes until snapshot "s" completes',
  },
  'an export while it is restored': {
    vm: aVm({ status: { restoreInProgress: 'r' } }),
    want: '409 Cannot update VM template until restore "r" completes',
  },
  'one that is being deleted': {
    vm: aVm({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    want: '409 VM is being deleted',
  },
};
for (const [title, { verb = 'exportdisk', vm = aVm(), vmi, volume = 'root', state, want }] of Object.entries(cases)) {
  test(`decides on ${title}`, () => {
    const answer = claimToOpen({ verb, vm, vmi, volume, state });
    if (!(answer instanceof ApiError)) return assert.equal(answer.claim, want);
    assert.match(
      `${answer.code} ${answer.message}`,
      new RegExp(`^${want.slice(0, 4)}.*${RegExp.escape(want.slice(4))}$`),
    );
  });
}

test('only a claim that waits for content gets some', () => {
  const aClaim = (annotations: object) => ({ metadata: { name: 'c', annotations } }) as PersistentVolumeClaim;
  assert.equal(uploadFault(aClaim({ [UPLOAD_ANNOTATION]: 'true' })), undefined);
  assert.equal(uploadFault(aClaim({ [UPLOAD_ANNOTATION]: 'false' }))?.code, 409);
  assert.equal(uploadFault(aClaim({}))?.code, 409);
  const isProtected = { [UPLOAD_ANNOTATION]: 'true', [PROTECTED_VMS_ANNOTATION]: 'db' };
  assert.match(uploadFault(aClaim(isProtected))?.message ?? '', /protected from deletion need it: db$/);
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
  test(`data of ${title}`, () => assert.equal(holderOf(volume as PersistentVolume), want));
}

const aNode = (
  name: string,
  ready: string,
  spec: object = {},
  labels: object = { 'kubevirt.io/schedulable': 'true' },
) => ({ metadata: { name, labels }, spec, status: { conditions: [{ type: 'Ready', status: ready }] } }) as Stored<Node>;
const tainted = (key: string, effect: string) => ({ taints: [{ key, effect }] });

test('a node that works is picked', () => {
  const nodes = [
    aNode('a', 'False'),
    aNode('b', 'True', { unschedulable: true }),
    aNode('c', 'True', tainted('k', 'NoSchedule')),
    aNode('e', 'True', tainted('k', 'PreferNoSchedule')),
    aNode('d', 'True'),
  ];
  assert.equal(pickNode(nodes), 'd');
  assert.equal(pickNode(nodes.slice(0, 3)), undefined);
});

test('on a cluster of others one of our nodes is picked, which keeps other pods away', () => {
  const kubelet = aNode('a-kubelet', 'True', {}, {});
  assert.equal(pickNode([kubelet, aNode('host', 'True', tainted('selfsame.io/vms-only', 'NoSchedule'))]), 'host');
  assert.equal(pickNode([kubelet]), undefined);
});
