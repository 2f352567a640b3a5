/** Tests the validation of migrations, and when an instance cannot be migrated. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aMigration, aVmi } from '#api/validation/testing/valid-objects.ts';
import {
  findMigrationRefusal,
  validateVirtualMachineInstanceMigration,
} from '#api/validation/kinds/validate-virtual-machine-instance-migration.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { Stored } from '#kube/meta.ts';

const UNKNOWN = { conditions: [{ type: 'ManualRecoveryRequired', status: 'True' }] };

const objects: Record<string, { migration?: unknown; old?: unknown; want?: string[] }> = {
  'a migration with an instance': {},
  'a migration with a node selector': { migration: { spec: { addedNodeSelector: { 'a.io/zone': 'b' } } } },
  'a migration without an instance': {
    migration: { spec: { vmiName: null } },
    want: ['spec.vmiName: Required value: vmiName is missing'],
  },
  'a migration with an empty instance name': {
    migration: { spec: { vmiName: '' } },
    want: ['spec.vmiName: Required value: vmiName is missing'],
  },
  'an unknown field': {
    migration: { spec: { fast: true } },
    want: ['spec.fast: Forbidden: unknown field'],
  },
  'a migration to another cluster': {
    migration: { spec: { sendTo: {}, receive: {}, priority: 'system-critical' } },
    want: [
      'spec.sendTo: Forbidden: is not supported: an instance can only be migrated within its cluster',
      'spec.receive: Forbidden: is not supported: an instance can only be migrated within its cluster',
      'spec.priority: Forbidden: is not supported yet',
    ],
  },
  'an invalid label in the node selector': {
    migration: { spec: { addedNodeSelector: { zone: 'a b' } } },
    want: [
      "spec.addedNodeSelector: Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  },
  'a change of the instance': {
    migration: { spec: { vmiName: 'web' } },
    old: {},
    want: ["spec: Forbidden: update of Migration object's spec is restricted"],
  },
  'a change of the labels': { migration: { metadata: { labels: { a: 'b' } } }, old: {} },
  'a recovery decision that was not requested': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'target' } } },
    want: [
      'metadata.annotations[selfsame.io/recovery]: Forbidden: may be set only while the condition ManualRecoveryRequired is True',
    ],
  },
  'a requested recovery decision': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'target' } } },
    old: { status: UNKNOWN },
  },
  'an unknown recovery decision': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'both' } } },
    old: { status: UNKNOWN },
    want: [
      'metadata.annotations[selfsame.io/recovery]: Unsupported value: "both": supported values: "source", "target"',
    ],
  },
  'a recovery decision that is no longer requested': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'source' } } },
    old: { status: { conditions: [{ type: 'ManualRecoveryRequired', status: 'False' }] } },
    want: [
      'metadata.annotations[selfsame.io/recovery]: Forbidden: may be set only while the condition ManualRecoveryRequired is True',
    ],
  },
  'an unchanged recovery decision': {
    migration: { metadata: { annotations: { 'selfsame.io/recovery': 'source' }, labels: { a: 'b' } } },
    old: { metadata: { annotations: { 'selfsame.io/recovery': 'source' } } },
  },
  'an unchanged spec with an unknown field': {
    migration: { spec: { fast: true } },
    old: { spec: { fast: true } },
  },
};

for (const [name, { migration, old, want = [] }] of Object.entries(objects)) {
  test(`${want.length === 0 ? 'accepts' : 'refuses'} ${name}`, () => {
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

const refusals: Record<string, { status?: object | null; active?: boolean; want?: string }> = {
  'a running instance': { status: { phase: 'Running' } },
  'a migratable instance': { status: { phase: 'Running', ...migratable('True') } },
  'a missing instance': { status: null, want: 'the VMI "golden/db" does not exist' },
  'a failed instance': {
    status: { phase: 'Failed', ...migratable('False') },
    want: 'Cannot migrate VMI in finalized state.',
  },
  'an instance that has succeeded': { status: { phase: 'Succeeded' }, want: 'Cannot migrate VMI in finalized state.' },
  'an instance that is not migratable': {
    status: { phase: 'Running', ...migratable('False') },
    want: 'Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: a hostDisk',
  },
  'an instance with an active migration': {
    status: { phase: 'Running' },
    active: true,
    want: 'in-flight migration detected. Active migration job (u-1) is currently already in progress for VMI db.',
  },
};

for (const [name, { status, active = false, want }] of Object.entries(refusals)) {
  test(`${want === undefined ? 'allows the migration of' : 'refuses the migration of'} ${name}`, () => {
    const vmi = status === null ? undefined : aVmi({ status });
    assert.equal(findMigrationRefusal(aMigration(), { vmi, active: active ? [stored] : [] }), want);
  });
}
