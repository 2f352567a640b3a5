import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationState } from '#api/migration-state.ts';
import type { Domain, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';
import { outcomeOf, writtenVerdict } from '#node/migration/verdict.ts';

describe('what is written of a migration', () => {
  const cases: Record<string, { state: MigrationState | undefined; want: string | undefined }> = {
    'says nothing where there is none': { state: undefined, want: undefined },
    'says nothing while it goes on': { state: { migrationUid: 'm' }, want: undefined },
    'says that it succeeded': { state: { migrationUid: 'm', completed: true }, want: 'migrated' },
    'says that it failed': { state: { migrationUid: 'm', completed: true, failed: true }, want: 'aborted' },
    'is clear where the next begins here': { state: { migrationUid: 'next', sourceNode: 'here' }, want: 'migrated' },
    'says nothing where the next begins elsewhere': {
      state: { migrationUid: 'next', sourceNode: 'there', completed: true, failed: true },
      want: undefined,
    },
  };
  for (const [what, { state, want }] of Object.entries(cases)) {
    it(what, () => {
      const status = state === undefined ? {} : { migrationState: state };
      const vmi = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: {},
        spec: { domain: {} },
        status,
      };
      assert.equal(writtenVerdict(vmi, 'm', 'here'), want);
    });
  }
});

describe('the source, when it is asked', () => {
  const source = (step: string, uid = 'm') => ({ uid, peer: 'there', role: 'source', step }) as DomainMigration;
  const running: DomainState = { state: 'running' };
  const cases: Record<
    string,
    { migration?: DomainMigration; current?: DomainState; isUnderWay?: boolean; want: string }
  > = {
    'knows that it has migrated': { migration: source('migrated'), want: 'migrated' },
    'knows that it has left': {
      migration: source('left'),
      current: { state: 'ended', how: 'migrated' },
      want: 'migrated',
    },
    'does not know while that it has migrated may not be on disk': {
      migration: source('migrated'),
      isUnderWay: true,
      want: 'undecided',
    },
    'does not know while it sends': { migration: source('sending'), isUnderWay: true, want: 'undecided' },
    'does not know until it has taken the guest back': { migration: source('sending'), want: 'undecided' },
    'has not where the guest ended while it was sent': {
      migration: source('sending'),
      current: { state: 'ended', how: 'crashed' },
      want: 'aborted',
    },
    'has not where it took the guest back': { migration: source('aborted'), want: 'aborted' },
    'does not know before it has begun to send': { isUnderWay: true, want: 'undecided' },
    'has not where it knows nothing of it': { want: 'aborted' },
    'has not where the record is of another': { migration: source('migrated', 'other'), want: 'aborted' },
  };
  for (const [what, { migration, current = running, isUnderWay = false, want }] of Object.entries(cases)) {
    it(what, () => {
      const domain: Domain = {
        ...{ id: 'u', name: 'ns/db', machine: 'q35', startedAtMs: 0, deviceEvents: 0, current },
        ...(migration && { migration }),
      };
      assert.equal(outcomeOf(domain, 'm', isUnderWay), want);
    });
  }

  it('has not where the guest is gone', () => assert.equal(outcomeOf(undefined, 'm', false), 'aborted'));
});
