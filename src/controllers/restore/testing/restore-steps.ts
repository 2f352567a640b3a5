/** Worlds of a restore on its way, and what is done in each, in short. */
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
  aWorld,
  CREATED,
  MARK,
  RESTORES,
  type RestoreOverrides,
} from '#controllers/restore/restore-world.fixture.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { findCondition } from '#kube/conditions.ts';
import type { StorageClass } from '#kube/core-kinds.ts';
import type { Plan } from '#runtime/plan.ts';

export type Status = NonNullable<VirtualMachineRestore['status']>;

/** What it does and what it says, in short. */
export function told({ changes, status }: Plan): string[] {
  const { conditions } = (status ?? {}) as Status;
  const failure = findCondition(conditions, 'Failure');
  const said = failure ?? findCondition(conditions, 'Progressing');
  return [
    ...changes.map(({ do: verb, type }) => `${verb} ${type.kind}`),
    ...(said === undefined ? [] : [`${failure === undefined ? '' : 'Failure: '}${said.message}`]),
  ];
}

export const HELD = { restoreInProgress: 'back' };
export const DELETED = { deletionTimestamp: CREATED };
export const known = (over: RestoreOverrides = {}) =>
  aRestore({ ...over, status: { targetUID: 'vm-uid', restores: RESTORES, ...over.status } });
export const running = (
  policy?: VirtualMachineRestore['spec']['targetReadinessPolicy'],
  spec = { runStrategy: 'Always' },
) => ({
  restore: known({ spec: { targetReadinessPolicy: policy } }),
  vm: aVm({ spec, status: HELD }),
  vmi: aVmi(),
});
export const IN_PLACE = { volumeRestorePolicy: 'InPlace' } as const;
export const inPlace = (claim?: ReturnType<typeof aClaim>, users: string[] = []): Partial<RestoreWorld> => ({
  restore: known({ spec: IN_PLACE }),
  volumes: [aView({ claimName: 'db-root', users, ...(claim === undefined ? {} : { claim }) })],
});
export const OLD = aClaim({ name: 'db-root', uid: 'old', annotations: {}, ownerReferences: undefined });
export const OF_SNAPSHOT = aClaim({ ...OLD.metadata, uid: 'root-claim-uid' });
export const WRITTEN = aVm({ status: HELD, metadata: { annotations: MARK } });
const DONE = [{ at: CREATED, what: 'restored', cause: 'VirtualMachineRestore back (restore-uid)' }];
export const RESTORED = { ...aRecord(), status: { history: DONE } };
export const FAILED = { conditions: [{ type: 'Failure', status: 'True' as const }] };
export const making = aRestore({ status: { restores: RESTORES } });
export const waitsForConsumer = { volumeBindingMode: 'WaitForFirstConsumer' } as StorageClass;

export type Step = [Partial<RestoreWorld>, string[]];

export function proveSteps(steps: Readonly<Record<string, Step>>): void {
  for (const [name, [world, want]] of Object.entries(steps)) {
    test(name, () => assert.deepEqual(told(decideRestore(aWorld(world))), want));
  }
}
