/** Worlds of a restore at its steps, and a table test of the decisions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { decideRestore } from '#controllers/restore/decide-restore.ts';
import {
  aClaim,
  aRecord,
  aRestore,
  aView,
  aVm,
  aVmi,
  aVolumeSnapshot,
  aWorld,
  CREATED,
  MARK,
  NEEDED,
  RESTORES,
  type RestoreOverrides,
} from '#controllers/restore/testing/restore-world.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { findCondition } from '#kube/conditions.ts';
import type { StorageClass } from '#kube/core-kinds.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Plan } from '#runtime/plan.ts';

export type Status = NonNullable<VirtualMachineRestore['status']>;

/** Describes a plan: its changes, and the message of the status. */
export function describePlan({ changes, status }: Plan): string[] {
  const { conditions } = (status ?? {}) as Status;
  const failure = findCondition(conditions, 'Failure');
  const reported = failure ?? findCondition(conditions, 'Progressing');
  return [
    ...changes.map(({ do: verb, type }) => `${verb} ${type.kind}`),
    ...(reported === undefined ? [] : [`${failure === undefined ? '' : 'Failure: '}${reported.message}`]),
  ];
}

export const HELD_STATUS = { restoreInProgress: 'back' };
export const DELETED = { deletionTimestamp: CREATED };
export const startedRestore = (over: RestoreOverrides = {}) =>
  aRestore({ ...over, status: { targetUID: 'vm-uid', restores: RESTORES, marksClaims: true, ...over.status } });
export const runningTarget = (
  policy?: VirtualMachineRestore['spec']['targetReadinessPolicy'],
  spec = { runStrategy: 'Always' },
) => ({
  restore: startedRestore({ spec: { targetReadinessPolicy: policy } }),
  vm: aVm({ spec, status: HELD_STATUS }),
  vmi: aVmi(),
});
/** The snapshot of a disk that the restore replaces. */
export const HELD_SNAPSHOT = withAnnotations(aVolumeSnapshot(), { ...NEEDED, 'selfsame.io/only-copy-of': 'db-root' });
function withAnnotations<T extends KubeObject>(object: T, annotations: Record<string, string>): T {
  return { ...object, metadata: { ...object.metadata, annotations } };
}
export const IN_PLACE = { volumeRestorePolicy: 'InPlace' } as const;
export const inPlace = (claim?: ReturnType<typeof aClaim>, users: string[] = []): Partial<RestoreWorld> => ({
  restore: startedRestore({ spec: IN_PLACE }),
  volumes: [aView({ claimName: 'db-root', users, snapshot: HELD_SNAPSHOT, ...(claim === undefined ? {} : { claim }) })],
});
export const OLD_CLAIM = aClaim({ name: 'db-root', uid: 'old', annotations: {}, ownerReferences: undefined });
export const SNAPSHOT_CLAIM = aClaim({ ...OLD_CLAIM.metadata, uid: 'root-claim-uid' });
export const WRITTEN_VM = aVm({ status: HELD_STATUS, metadata: { annotations: MARK } });
const DONE = [{ at: CREATED, what: 'restored', cause: 'VirtualMachineRestore back (restore-uid)' }];
export const RESTORED_RECORD = { ...aRecord(), status: { history: DONE } };
export const FAILED_STATUS = { conditions: [{ type: 'Failure', status: 'True' as const }] };
export const creatingRestore = aRestore({ status: { restores: RESTORES, marksClaims: true } });
export const waitsForConsumer = { volumeBindingMode: 'WaitForFirstConsumer' } as StorageClass;

export type Step = [Partial<RestoreWorld>, string[]];

export function testSteps(steps: Readonly<Record<string, Step>>): void {
  for (const [name, [world, want]] of Object.entries(steps)) {
    test(name, () => assert.deepEqual(describePlan(decideRestore(aWorld(world))), want));
  }
}
