import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MigrationStatus, VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { instanceKeysOfActive } from '#controllers/vmi/active-migrations.ts';
import { decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { aPod, aVmi, aWorld, NOW } from '#controllers/vmi/testing/vmi-world.ts';
import type { VmiStateView } from '#controllers/vmi/vmi-world.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';

const migration = (status?: MigrationStatus): Stored<VirtualMachineInstanceMigration> => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { namespace: 'ns', name: 'x', uid: 'm', resourceVersion: '1', creationTimestamp: NOW },
  spec: { vmiName: 'db' },
  ...(status === undefined ? {} : { status }),
});
const ANNOUNCED = { migrationState: { migrationUid: 'm' } };

const cases: Record<string, { status?: MigrationStatus; want: string[] }> = {
  'a migration without a status is not active': { want: [] },
  'a pending migration is not active': { status: { phase: 'Pending' }, want: [] },
  'a migration that is announced to node agents is active': {
    status: { ...ANNOUNCED, phase: 'PreparingTarget' },
    want: ['ns/db'],
  },
  'a running migration is active': { status: { ...ANNOUNCED, phase: 'Running' }, want: ['ns/db'] },
  'a migration that succeeded is not active': { status: { ...ANNOUNCED, phase: 'Succeeded' }, want: [] },
  'a migration that failed is not active': { status: { ...ANNOUNCED, phase: 'Failed' }, want: [] },
  'a migration with the state of another one is not active': {
    status: { phase: 'Running', migrationState: { migrationUid: 'other' } },
    want: [],
  },
};
for (const [name, { status, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(instanceKeysOfActive(migration(status)), want));
}

const tpm = { domain: { devices: { tpm: { persistent: true } } } };
const storage = {
  storageClassName: 'local',
  volumeMode: 'Filesystem',
  accessMode: 'ReadWriteOnce',
  size: '10Mi',
} as const;
const wanted: VmiStateView = { kind: 'wanted', storage };

test('neither a pod nor a state claim is created while an earlier guest may be migrating', () => {
  for (const more of [{}, { vmi: aVmi({ spec: tpm }), state: wanted }]) {
    const { changes, status, events } = decideVmi(aWorld({ ...more, isMigrationActive: true }));
    assert.deepEqual(changes, []);
    const { reason, message } = findCondition((status as VmiStatus).conditions, 'Synchronized') ?? {};
    assert.deepEqual([reason, message], ['ActiveMigration', 'active migration exists']);
    assert.deepEqual(events, [], 'a migration ends by itself');
    assert.equal(decideVmi(aWorld(more)).changes.length, 1);
  }
});

test('a running guest is not affected by its own migration', () => {
  const vmi = aVmi({ status: { phase: 'Running', migrationState: { migrationUid: 'm' } } });
  const { status } = decideVmi(aWorld({ vmi, pod: aPod({ nodeName: 'a' }), isMigrationActive: true }));
  assert.equal(findCondition((status as VmiStatus).conditions, 'Synchronized'), undefined);
});
