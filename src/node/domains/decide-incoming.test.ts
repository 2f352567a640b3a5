/** What the agent at the target does. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decideDomain } from '#node/domains/decide-domain.ts';
import {
  TOLD,
  type Facts,
  aWorld,
  named,
  source,
  comes,
  incoming,
  asked,
} from '#node/domains/testing/migration-facts.ts';
import type { DomainState } from '#node/hypervisor/hypervisor.ts';

const arriving: DomainState = { state: 'incoming' };
const crashed: DomainState = { state: 'ended', how: 'crashed' };
const gone: DomainState = { state: 'ended', how: 'migrated' };

const targets: Record<string, Facts & { want: readonly string[] }> = {
  'starts nothing': { noDomain: true, phase: 'Pending', want: ['reportPod Pending MigrationPending'] },
  'waits while the guest is prepared': {
    noDomain: true,
    phase: 'Pending',
    notes: incoming,
    want: ['reportPod Pending MigrationPending'],
  },
  'fails when nothing came': {
    noDomain: true,
    phase: 'Pending',
    attempt: { is: 'failed', reason: 'MigrationAborted', message: 'no' },
    want: ['remove', 'reportPod Failed MigrationAborted'],
  },
  'fails when what waited was cleared away': {
    noDomain: true,
    want: ['remove', 'reportPod Failed MigrationAborted'],
  },
  'has lost what had come': { noDomain: true, isCommitted: true, want: ['reportPod Failed GuestLost'] },
  'is not ready while the guest comes': {
    record: comes('waiting'),
    current: arriving,
    notes: incoming,
    want: ['reportPod Running MigrationTarget'],
  },
  'gives up what comes when its pod is deleted': {
    record: comes('waiting'),
    current: arriving,
    notes: incoming,
    deleted: 30,
    want: ['abortMigration'],
  },
  'gives up when the process ends': {
    record: comes('waiting'),
    current: crashed,
    notes: incoming,
    want: ['abortMigration'],
  },
  'switches off what waits for nobody': { record: comes('waiting'), current: arriving, want: ['destroy'] },
  'clears it away': {
    record: comes('waiting'),
    current: crashed,
    want: ['reportPod Failed MigrationAborted', 'remove'],
  },
  'lets its pod go after that': {
    record: comes('waiting'),
    current: crashed,
    phase: 'Failed',
    deleted: 30,
    want: ['remove', 'removePod'],
  },
  'asks what became of what is stored': {
    record: comes('stored'),
    current: arriving,
    want: ['reportPod Running MigrationTarget', 'askOutcome'],
  },
  'asks also when its pod is deleted': {
    record: comes('stored'),
    current: arriving,
    deleted: 30,
    want: ['reportPod Running MigrationTarget', 'askOutcome'],
  },
  'asks also when the process has ended': { record: comes('stored'), current: crashed, want: ['askOutcome'] },
  'does not ask twice at a time': {
    record: comes('stored'),
    current: arriving,
    notes: asked({ isAsked: true }),
    want: ['reportPod Running MigrationTarget'],
  },
  'asks again later': {
    record: comes('stored'),
    current: arriving,
    notes: asked({ dueAtMs: 100 }),
    want: ['reportPod Running MigrationTarget', 'lookAgain'],
  },
  'leaves the question to the session': {
    record: comes('stored'),
    current: arriving,
    notes: incoming,
    want: ['reportPod Running MigrationTarget'],
  },
  'lets the guest go on when it is its own': {
    record: comes('stored'),
    current: arriving,
    notes: asked({ answer: 'migrated' }),
    want: ['commit'],
  },
  'switches it off when it is not': {
    record: comes('stored'),
    current: arriving,
    notes: asked({ answer: 'aborted' }),
    want: ['destroy'],
  },
  'does not believe the answer about another': {
    record: comes('stored'),
    current: arriving,
    notes: { question: { uid: 'm-0', answer: 'aborted', isAsked: false, tries: 1, dueAtMs: 0 } },
    want: ['reportPod Running MigrationTarget', 'askOutcome'],
  },
  'tells of a guest that was its own and crashed': {
    record: comes('stored'),
    current: crashed,
    notes: asked({ answer: 'migrated' }),
    want: ['reportPod Failed GuestCrashed committed'],
  },
  'lets a guest go on that was committed': { record: comes('committed'), current: arriving, want: ['commit'] },
  'is a pod as any other when the guest has arrived': {
    record: comes('arrived'),
    want: ['reportPod Running committed'],
  },
  'is that at once': { record: comes('arrived'), notes: incoming, want: ['reportPod Running committed'] },
  'clears away what an earlier stay left': {
    record: source('left', 'm-0'),
    current: gone,
    phase: 'Pending',
    want: ['remove', 'reportPod Pending MigrationPending'],
  },
};

describe('the agent at the target', () => {
  for (const [what, { want, ...facts }] of Object.entries(targets)) {
    const world = aWorld({ ...facts, target: true, state: { ...TOLD, completed: false } });
    it(what, () => assert.deepEqual(decideDomain(world).map(named), want));
  }
});
