/** Migrations: what they must say, and when their instance cannot go. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aMigration, aVmi } from '#api/validation/testing/valid-objects.ts';
import {
  findMigrationRefusal,
  validateVirtualMachineInstanceMigration,
} from '#api/validation/validate-virtual-machine-instance-migration.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { Stored } from '#kube/meta.ts';

const UNKNOWN = { conditions: [{ type: 'ManualRecoveryRequired', status: 'True' }] };

const objects: Record<string, { migration?: unknown; old?: unknown; want?: string[] }> = {
  'one that names its instance': {},
  'one to a certain node': { migration: { spec: { addedNodeSelector: { 'a.io/zone': 'b' } } } },
  'of nobody': {
    migration: { spec: { vmiName: null } },
    want: ['spec.vmiName: Required value: vmiName is missing'],
  },
  'of an empty name': {
    migration: { spec: { vmiName: '' } },
    want: ['spec.vmiName: Required value: vmiName is missing'],
  },
  'with a field that nobody knows': {
    migration: { spec: { fast: true } },
    want: ['spec.fast: Forbidden: unknown field'],
  },
  'to another cluster': {
    migration: { spec: { sendTo: {}, receive: {}, priority: 'system-critical' } },
    want: [
      'spec.sendTo: Forbidden: is not supported: an instance can only be migrated within its cluster',
      'spec.receive: Forbidden: is not supported: an instance can only be migrated within its cluster',
      'spec.priority: Forbidden: is not supported yet',
    ],
  },
  'to a label that is none': {
    migration: { spec: { addedNodeSelector: { zone: 'a b' } } },
    want: [
      "spec.addedNodeSelector: Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  },
  'one that changes its instance': {
    migration: { spec: { vmiName: 'web' } },
    old: {},
    want: ["spec: Forbidden: update of Migration object's spec is restricted"],
  },
  'one that changes its labels': { migration: { metadata: { labels: { a: 'b' } } }, old: {} },
  'one that decides before anybody asks': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'target' } } },
    want: [
      'metadata.annotations[selfsame.io/recovery]: Forbidden: may be set only while the condition ManualRecoveryRequired is True',
    ],
  },
  'one of which people decide that the guest went': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'target' } } },
    old: { status: UNKNOWN },
  },
  'one of which people decide something else': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'both' } } },
    old: { status: UNKNOWN },
    want: [
      'metadata.annotations[selfsame.io/recovery]: Unsupported value: "both": supported values: "source", "target"',
    ],
  },
  'one of which people decide what a node can say again': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'source' } } },
    old: { status: { conditions: [{ type: 'ManualRecoveryRequired', status: 'False' }] } },
    want: [
      'metadata.annotations[selfsame.io/recovery]: Forbidden: may be set only while the condition ManualRecoveryRequired is True',
    ],
  },
  'one of which people have decided before': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'source' }, labels: { a: 'b' } } },
    old: { metadata: { annotations: { 'selfsame.io/recovery': 'source' } } },
  },
  'one that was stored before its field was refused': {
    migration: { spec: { fast: true } },
    old: { spec: { fast: true } },
  },
};

for (const [name, { migration, old, want = [] }] of Object.entries(objects)) {
  test(`${want.length === 0 ? 'allows' : 'refuses'}: ${name}`, () => {
    const context = { old: old === undefined ? undefined : aMigration(old) };
    const errors = validateVirtualMachineInstanceMigration(aMigration(migration), context);
    assert.deepEqual(
      errors.map(({ field, message }) => `${field}: ${message}`),
      want,
    );
  });
}

const stored = aMigration({ metadata: { uid: 'u-1' } }) as Stored<VirtualMachineInstanceMigration>;
const migratable = (status: string) => ({
  conditions: [{ type: 'LiveMigratable', status, reason: 'DisksNotLiveMigratable', message: 'a hostDisk' }],
});

const obstacles: Record<string, { status?: object | null; active?: boolean; want?: string }> = {
  'an instance that runs': { status: { phase: 'Running' } },
  'an instance that can go': { status: { phase: 'Running', ...migratable('True') } },
  'an instance that is not there': { status: null, want: 'the VMI "golden/db" does not exist' },
  'an instance that has failed': {
    status: { phase: 'Failed', ...migratable('False') },
    want: 'Cannot migrate VMI in finalized state.',
  },
  'an instance that has ended': { status: { phase: 'Succeeded' }, want: 'Cannot migrate VMI in finalized state.' },
  'an instance that cannot go': {
    status: { phase: 'Running', ...migratable('False') },
    want: 'Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: a hostDisk',
  },
  'an instance that is on its way': {
    status: { phase: 'Running' },
    active: true,
    want: 'in-flight migration detected. Active migration job (u-1) is currently already in progress for VMI db.',
  },
};

for (const [name, { status, active = false, want }] of Object.entries(obstacles)) {
  test(`${want === undefined ? 'may go' : 'may not go'}: ${name}`, () => {
    const vmi = status === null ? undefined : aVmi({ status });
    assert.equal(findMigrationRefusal(aMigration(), { vmi, active: active ? [stored] : [] }), want);
  });
}
