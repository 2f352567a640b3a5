import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationState } from '#api/migration/migration-state.ts';
import type { DomainInfo, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';
import { sourceOutcome, concludedOutcome } from '#node/migration/migration-outcome.ts';

describe('the outcome in the status of the instance', () => {
  const cases: Record<string, { state: MigrationState | undefined; want: string | undefined }> = {
    'is unknown without a migration': { state: undefined, want: undefined },
    'is unknown during the migration': { state: { migrationUid: 'm' }, want: undefined },
    'is migrated after a success': { state: { migrationUid: 'm', completed: true }, want: 'migrated' },
    'is aborted after a failure': { state: { migrationUid: 'm', completed: true, failed: true }, want: 'aborted' },
    'is migrated if the next migration starts on this node': {
      state: { migrationUid: 'next', sourceNode: 'here' },
      want: 'migrated',
    },
    'is unknown if the next migration starts on another node': {
      state: { migrationUid: 'next', sourceNode: 'there', completed: true, failed: true },
      want: undefined,
    },
  };
  for (const [sentence, { state, want }] of Object.entries(cases)) {
    it(sentence, () => {
      const status = state === undefined ? {} : { migrationState: state };
      const vmi = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: {},
        spec: { domain: {} },
        status,
      };
      assert.equal(concludedOutcome(vmi, 'm', 'here'), want);
    });
  }
});

describe('the outcome according to the source', () => {
  const source = (step: string, uid = 'm') => ({ uid, peer: 'there', role: 'source', step }) as DomainMigration;
  const running: DomainState = { state: 'running' };
  const cases: Record<
    string,
    { migration?: DomainMigration; current?: DomainState; isInProgress?: boolean; want: string }
  > = {
    'is migrated if the record says so': { migration: source('migrated'), want: 'migrated' },
    'is migrated if the guest has left': {
      migration: source('left'),
      current: { state: 'ended', how: 'migrated' },
      want: 'migrated',
    },
    'is undecided while the record may not be durable': {
      migration: source('migrated'),
      isInProgress: true,
      want: 'undecided',
    },
    'is undecided while the guest is being sent': {
      migration: source('sending'),
      isInProgress: true,
      want: 'undecided',
    },
    'is undecided until the guest was taken back': { migration: source('sending'), want: 'undecided' },
    'is aborted if the guest ended while it was being sent': {
      migration: source('sending'),
      current: { state: 'ended', how: 'crashed' },
      want: 'aborted',
    },
    'is aborted if the guest was taken back': { migration: source('aborted'), want: 'aborted' },
    'is undecided before the guest is sent': { isInProgress: true, want: 'undecided' },
    'is aborted without a record': { want: 'aborted' },
    'is aborted if the record is of another migration': { migration: source('migrated', 'other'), want: 'aborted' },
  };
  for (const [sentence, { migration, current = running, isInProgress = false, want }] of Object.entries(cases)) {
    it(sentence, () => {
      const domain: DomainInfo = {
        ...{ id: 'u', name: 'ns/db', machine: 'q35', startedAtMs: 0, deviceEvents: 0, current },
        ...(migration && { migration }),
      };
      assert.equal(sourceOutcome(domain, 'm', isInProgress), want);
    });
  }

  it('is aborted if the guest is gone', () => assert.equal(sourceOutcome(undefined, 'm', false), 'aborted'));
});
