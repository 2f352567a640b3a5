import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MigrationStatus, VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { activeKeysOf } from '#controllers/vmi/active-migrations.ts';
import { decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { aPod, aVmi, aWorld, NOW } from '#controllers/vmi/vmi-world.fixture.ts';
import type { StateView } from '#controllers/vmi/vmi-world.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';

const migration = (status?: MigrationStatus): Stored<VirtualMachineInstanceMigration> => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { namespace: 'ns', name: 'x', uid: 'm', resourceVersion: '1', creationTimestamp: NOW },
  spec: { vmiName: 'db' },
  ...(status === undefined ? {} : { status }),
});
const TOLD = { migrationState: { migrationUid: 'm' } };

const cases: Record<string, { status?: MigrationStatus; want: string[] }> = {
  'one that nobody has looked at holds nothing up': { want: [] },
  'nor does one that waits': { status: { phase: 'Pending' }, want: [] },
  'one of which agents were told does': { status: { ...TOLD, phase: 'PreparingTarget' }, want: ['ns/db'] },
  'also while it is done': { status: { ...TOLD, phase: 'Running' }, want: ['ns/db'] },
  'not when it has succeeded': { status: { ...TOLD, phase: 'Succeeded' }, want: [] },
  'nor when it has failed': { status: { ...TOLD, phase: 'Failed' }, want: [] },
  'nor with what was said of another': {
    status: { phase: 'Running', migrationState: { migrationUid: 'other' } },
    want: [],
  },
};
for (const [name, { status, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(activeKeysOf(migration(status)), want));
}

const tpm = { domain: { devices: { tpm: { persistent: true } } } };
const storage = {
  storageClassName: 'local',
  volumeMode: 'Filesystem',
  accessMode: 'ReadWriteOnce',
  size: '10Mi',
} as const;
const wanted: StateView = { is: 'wanted', storage };

test('neither a pod nor a claim for state is made while an earlier guest may be on its way', () => {
  for (const more of [{}, { vmi: aVmi({ spec: tpm }), state: wanted }]) {
    const { changes, status, events } = decideVmi(aWorld({ ...more, isMigrationActive: true }));
    assert.deepEqual(changes, []);
    const { reason, message } = findCondition((status as VmiStatus).conditions, 'Synchronized') ?? {};
    assert.deepEqual([reason, message], ['ActiveMigration', 'active migration exists']);
    assert.deepEqual(events, [], 'it passes by itself');
    assert.equal(decideVmi(aWorld(more)).changes.length, 1);
  }
});

test('a guest that runs is not held up by its own migration', () => {
  const vmi = aVmi({ status: { phase: 'Running', migrationState: { migrationUid: 'm' } } });
  const { status } = decideVmi(aWorld({ vmi, pod: aPod({ nodeName: 'a' }), isMigrationActive: true }));
  assert.equal(findCondition((status as VmiStatus).conditions, 'Synchronized'), undefined);
});
