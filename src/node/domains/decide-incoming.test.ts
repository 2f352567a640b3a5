/** The decisions of the agent at the target of a migration. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decideDomain } from '#node/domains/decide-domain.ts';
import {
  REQUESTED,
  type MigrationFacts,
  aWorld,
  summarizeAction,
  sourceRecord,
  targetRecord,
  incoming,
  outcomeQuery,
} from '#node/domains/testing/migration-facts.ts';
import type { DomainState } from '#node/hypervisor/hypervisor.ts';

const arriving: DomainState = { state: 'incoming' };
const crashed: DomainState = { state: 'ended', how: 'crashed' };
const migrated: DomainState = { state: 'ended', how: 'migrated' };

const targets: Record<string, MigrationFacts & { want: readonly string[] }> = {
  'does not start a guest itself': { noDomain: true, phase: 'Pending', want: ['reportPod Pending MigrationPending'] },
  'waits while the guest is prepared': {
    noDomain: true,
    phase: 'Pending',
    notes: incoming,
    want: ['reportPod Pending MigrationPending'],
  },
  'fails the pod if the guest did not arrive': {
    noDomain: true,
    phase: 'Pending',
    attempt: { is: 'failed', reason: 'MigrationAborted', message: 'no' },
    want: ['remove', 'reportPod Failed MigrationAborted'],
  },
  'fails the pod if the waiting guest was removed': {
    noDomain: true,
    want: ['remove', 'reportPod Failed MigrationAborted'],
  },
  'reports a committed guest without a domain as lost': {
    noDomain: true,
    isCommitted: true,
    want: ['reportPod Failed GuestLost'],
  },
  'reports the pod as not ready during the migration': {
    record: targetRecord('waiting'),
    current: arriving,
    notes: incoming,
    want: ['reportPod Running MigrationTarget'],
  },
  'aborts if its pod is deleted': {
    record: targetRecord('waiting'),
    current: arriving,
    notes: incoming,
    deleted: 30,
    want: ['abortMigration'],
  },
  'aborts if the process of the guest ends': {
    record: targetRecord('waiting'),
    current: crashed,
    notes: incoming,
    want: ['abortMigration'],
  },
  'switches off a waiting guest without a session': {
    record: targetRecord('waiting'),
    current: arriving,
    want: ['destroy'],
  },
  'removes an ended guest without a session': {
    record: targetRecord('waiting'),
    current: crashed,
    want: ['reportPod Failed MigrationAborted', 'remove'],
  },
  'removes the deleted pod with the guest': {
    record: targetRecord('waiting'),
    current: crashed,
    phase: 'Failed',
    deleted: 30,
    want: ['remove', 'removePod'],
  },
  'asks the source for the outcome if the guest is stored': {
    record: targetRecord('stored'),
    current: arriving,
    want: ['reportPod Running MigrationTarget', 'queryOutcome'],
  },
  'asks the source also if the pod is deleted': {
    record: targetRecord('stored'),
    current: arriving,
    deleted: 30,
    want: ['reportPod Running MigrationTarget', 'queryOutcome'],
  },
  'asks the source also if the guest has crashed': {
    record: targetRecord('stored'),
    current: crashed,
    want: ['queryOutcome'],
  },
  'does not ask while an answer is pending': {
    record: targetRecord('stored'),
    current: arriving,
    notes: outcomeQuery({ isPending: true }),
    want: ['reportPod Running MigrationTarget'],
  },
  'asks again after the backoff': {
    record: targetRecord('stored'),
    current: arriving,
    notes: outcomeQuery({ dueAtMs: 100 }),
    want: ['reportPod Running MigrationTarget', 'recheck'],
  },
  'does not ask while a session is running': {
    record: targetRecord('stored'),
    current: arriving,
    notes: incoming,
    want: ['reportPod Running MigrationTarget'],
  },
  'commits if the source has migrated': {
    record: targetRecord('stored'),
    current: arriving,
    notes: outcomeQuery({ answer: 'migrated' }),
    want: ['commit'],
  },
  'switches the guest off if the source has aborted': {
    record: targetRecord('stored'),
    current: arriving,
    notes: outcomeQuery({ answer: 'aborted' }),
    want: ['destroy'],
  },
  'ignores an answer about another migration': {
    record: targetRecord('stored'),
    current: arriving,
    notes: { outcomeQuery: { uid: 'm-0', answer: 'aborted', isPending: false, tries: 1, dueAtMs: 0 } },
    want: ['reportPod Running MigrationTarget', 'queryOutcome'],
  },
  'reports a guest as committed that crashed after the source had migrated': {
    record: targetRecord('stored'),
    current: crashed,
    notes: outcomeQuery({ answer: 'migrated' }),
    want: ['reportPod Failed GuestCrashed committed'],
  },
  'repeats the commit after a restart': { record: targetRecord('committed'), current: arriving, want: ['commit'] },
  'treats an arrived guest like any other': {
    record: targetRecord('arrived'),
    want: ['reportPod Running committed'],
  },
  'treats an arrived guest like any other while the session ends': {
    record: targetRecord('arrived'),
    notes: incoming,
    want: ['reportPod Running committed'],
  },
  'removes the leftover of an earlier run on this node': {
    record: sourceRecord('left', 'm-0'),
    current: migrated,
    phase: 'Pending',
    want: ['remove', 'reportPod Pending MigrationPending'],
  },
};

describe('the agent at the target', () => {
  for (const [sentence, { want, ...facts }] of Object.entries(targets)) {
    const world = aWorld({ ...facts, target: true, state: { ...REQUESTED, completed: false } });
    it(sentence, () => assert.deepEqual(decideDomain(world).map(summarizeAction), want));
  }
});
