import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SNAPSHOT_INSTANCE_ANNOTATION } from '#api/names.ts';
import type { ContentStatus } from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildContentStatus } from '#controllers/snapshot/content-status.ts';
import { aClaim, aSnapshot, aVm, CREATED, CREATED_MS } from '#controllers/snapshot/testing/snapshot-world.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';

const stored = { namespace: 'ns', resourceVersion: '1', creationTimestamp: CREATED };
const backup = { volumeName: 'root', persistentVolumeClaim: aClaim('root-claim'), volumeSnapshotName: 'copy' };
const COMPLETE = { phase: 'Succeeded', readyToUse: true } as const;

function aCopy(uid: string): Stored<VolumeSnapshot> {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { ...stored, name: 'copy', uid },
    spec: { source: { persistentVolumeClaimName: 'root-claim' } },
    status: { readyToUse: true, creationTime: CREATED },
  };
}

interface Case {
  /** The uid of the VolumeSnapshot that exists. */
  readonly uid: string;
  /** The uid that the status has; null if the status was written without it. */
  readonly recorded?: string | null;
  readonly isComplete?: boolean;
  readonly isRunning?: boolean;
  readonly want: { readonly volumeSnapshotUID?: string; readonly readyToUse: boolean };
}

const cases: Record<string, Case> = {
  'records the uid of a new copy': { uid: 'a', want: { volumeSnapshotUID: 'a', readyToUse: true } },
  'keeps the uid': { uid: 'a', recorded: 'a', isComplete: true, want: { volumeSnapshotUID: 'a', readyToUse: true } },
  'a copy of a stopped VM may be requested again while the snapshot is taken': {
    uid: 'b',
    recorded: 'a',
    want: { volumeSnapshotUID: 'b', readyToUse: true },
  },
  'another copy of a running guest is not used': {
    uid: 'b',
    recorded: 'a',
    isRunning: true,
    want: { volumeSnapshotUID: 'a', readyToUse: false },
  },
  'another copy with the name of a complete one is not used': {
    uid: 'b',
    recorded: 'a',
    isComplete: true,
    want: { volumeSnapshotUID: 'a', readyToUse: false },
  },
  'a complete snapshot of an earlier version gets no uid': {
    uid: 'a',
    recorded: null,
    isComplete: true,
    want: { readyToUse: true },
  },
};

for (const [name, { uid, recorded, isComplete, isRunning, want }] of Object.entries(cases)) {
  test(name, () => {
    const known = { volumeSnapshotName: 'copy', ...(recorded !== null && { volumeSnapshotUID: recorded }) };
    const status: ContentStatus = recorded === undefined ? {} : { volumeSnapshotStatus: [known] };
    const { metadata, spec } = aVm();
    const { volumeSnapshotStatus } = buildContentStatus({
      content: {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineSnapshotContent',
        metadata: {
          ...{ ...stored, name: 'content', uid: 'content-uid' },
          ...(isRunning && { annotations: { [SNAPSHOT_INSTANCE_ANNOTATION]: 'vmi-uid' } }),
        },
        spec: { source: { virtualMachine: { metadata, spec } }, volumeBackups: [backup] },
        status,
      },
      snapshot: aSnapshot({}, isComplete ? COMPLETE : undefined),
      copies: [{ backup, volumeSnapshot: aCopy(uid) }],
      hasRestore: false,
      now: CREATED_MS,
    });
    const { volumeSnapshotUID, readyToUse } = volumeSnapshotStatus?.[0] ?? {};
    assert.deepEqual({ ...(volumeSnapshotUID !== undefined && { volumeSnapshotUID }), readyToUse }, want);
  });
}
