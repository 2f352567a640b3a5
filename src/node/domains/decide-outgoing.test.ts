/** The decisions and reports of the agent at the source of a migration. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationProgress } from '#api/migration/migration-state.ts';
import { decideDomain } from '#node/domains/decide-domain.ts';
import { progressToReport } from '#node/domains/decide-outgoing.ts';
import {
  UID,
  REQUESTED,
  type MigrationFacts,
  aWorld,
  summarizeAction,
  sourceRecord,
  session,
} from '#node/domains/testing/migration-facts.ts';
import type { DomainState } from '#node/hypervisor/hypervisor.ts';

const pausedForMigration: DomainState = { state: 'paused', why: 'migration' };

const migrated: DomainState = { state: 'ended', how: 'migrated' };
const failed: MigrationProgress = { migrationUid: UID, phase: 'Failed', message: 'no' };

const sources: Record<string, MigrationFacts & { want: readonly string[] }> = {
  'starts a requested migration': { state: REQUESTED, want: ['reportPod Running', 'migrate'] },
  'does not read or change devices while a migration is requested': {
    state: { ...REQUESTED, targetPod: undefined },
    want: ['reportPod Running'],
  },
  'does not start a migration from another node': {
    state: { ...REQUESTED, sourceNode: 'n3' },
    want: ['reportPod Running'],
  },
  'does not start a failed migration again': { state: REQUESTED, reported: failed, want: ['reportPod Running'] },
  'reports a migration that an earlier process aborted, and does not start it again': {
    state: REQUESTED,
    record: sourceRecord('aborted'),
    want: ['reportVmi', 'reportPod Running'],
  },
  'starts a migration after an earlier one was aborted': {
    state: REQUESTED,
    record: sourceRecord('aborted', 'm-0'),
    want: ['reportPod Running', 'migrate'],
  },
  'migrates a guest that the user has paused': {
    state: REQUESTED,
    current: { state: 'paused' },
    want: ['reportPod Running', 'migrate'],
  },
  'reports that a guest with a failing disk cannot be migrated': {
    state: REQUESTED,
    current: { state: 'paused', why: 'ioError' },
    want: ['reportVmi', 'reportPod Running'],
  },
  'waits until the guest has released a device': {
    state: REQUESTED,
    leaving: ['disk-a'],
    want: ['reportPod Running', 'recheck'],
  },
  'fails if the guest does not release a device in time': {
    state: REQUESTED,
    leaving: ['disk-a'],
    afterMs: 61_000,
    want: ['reportVmi', 'reportPod Running'],
  },
  'reports the progress of the session': {
    state: REQUESTED,
    notes: session(),
    record: sourceRecord('sending'),
    want: ['reportVmi', 'reportPod Running'],
  },
  'aborts on request': {
    state: { ...REQUESTED, abortRequested: true },
    notes: session(),
    record: sourceRecord('sending'),
    want: ['abortMigration'],
  },
  'aborts before it stops the guest': {
    state: REQUESTED,
    notes: session(),
    record: sourceRecord('sending'),
    deleted: 30,
    want: ['abortMigration'],
  },
  'does not abort after the guest has migrated': {
    state: { ...REQUESTED, abortRequested: true },
    notes: session('Committed'),
    record: sourceRecord('migrated'),
    current: pausedForMigration,
    deleted: 30,
    want: ['reportVmi', 'reportPod Running committed'],
  },
  'waits for the final progress before it reports the migration': {
    state: REQUESTED,
    notes: {
      outgoing: { uid: UID, progress: { migrationUid: UID, phase: 'Switching' }, isOver: false, withholdsReport: true },
    },
    record: sourceRecord('migrated'),
    current: pausedForMigration,
    want: [],
  },
  'takes back a guest that an earlier process was sending': {
    state: REQUESTED,
    record: sourceRecord('sending'),
    want: ['takeBack'],
  },
  'switches off a guest that the user gave to the target': {
    state: { ...REQUESTED, completed: true },
    record: sourceRecord('sending'),
    current: pausedForMigration,
    want: ['destroyStale'],
  },
  'switches off a guest that it took back before the user gave it to the target': {
    state: { ...REQUESTED, completed: true },
    record: sourceRecord('aborted'),
    want: ['destroyStale'],
  },
  'switches off a guest of the target at once if the pod is deleted': {
    state: { ...REQUESTED, completed: true },
    record: sourceRecord('aborted'),
    deleted: 30,
    want: ['destroyStale'],
  },
  'switches off a guest that has migrated further meanwhile': {
    state: { ...REQUESTED, migrationUid: 'm-2', sourceNode: 'n2', targetNode: 'n3' },
    nodeName: 'n2',
    record: sourceRecord('sending'),
    current: pausedForMigration,
    want: ['destroyStale'],
  },
  'takes back a guest that the user gave to the source': {
    state: { ...REQUESTED, completed: true, failed: true },
    record: sourceRecord('sending'),
    current: pausedForMigration,
    want: ['takeBack'],
  },
  'switches off an interrupted guest whose instance is gone': {
    noVmi: true,
    record: sourceRecord('sending'),
    current: pausedForMigration,
    deleted: 30,
    want: ['destroy'],
  },
  'switches off an interrupted guest whose pod has ended': {
    state: REQUESTED,
    record: sourceRecord('sending'),
    current: pausedForMigration,
    phase: 'Failed',
    want: ['destroy'],
  },
  'switches off an interrupted guest whose pod is gone': {
    noPod: true,
    record: sourceRecord('sending'),
    current: pausedForMigration,
    want: ['destroy'],
  },
  'takes a guest back before it stops it': {
    state: REQUESTED,
    record: sourceRecord('sending'),
    deleted: 30,
    want: ['takeBack'],
  },
  'keeps a migrated guest until the controller has concluded': {
    state: REQUESTED,
    record: sourceRecord('migrated'),
    current: pausedForMigration,
    want: ['reportVmi', 'reportPod Running committed'],
  },
  'leaves when the controller has concluded': {
    state: { ...REQUESTED, completed: true },
    record: sourceRecord('migrated'),
    current: pausedForMigration,
    want: ['leave'],
  },
  'leaves when the next migration is requested': {
    state: { ...REQUESTED, migrationUid: 'm-2' },
    record: sourceRecord('migrated'),
    current: pausedForMigration,
    want: ['leave'],
  },
  'reports that the guest has migrated': {
    state: REQUESTED,
    record: sourceRecord('left'),
    current: migrated,
    want: ['reportVmi', 'reportPod Succeeded Migrated committed'],
  },
  'removes the migrated guest with its pod': {
    state: { ...REQUESTED, completed: true },
    reported: { migrationUid: UID, phase: 'Committed' },
    record: sourceRecord('left'),
    current: migrated,
    phase: 'Succeeded',
    deleted: 30,
    want: ['remove', 'removePod'],
  },
};

describe('the agent at the source', () => {
  for (const [sentence, { want, ...facts }] of Object.entries(sources)) {
    it(sentence, () => assert.deepEqual(decideDomain(aWorld(facts)).map(summarizeAction), want));
  }
});

describe('the reported progress of a migration', () => {
  const phases: Record<string, { facts: MigrationFacts; want: string | undefined }> = {
    'is that of the session': { facts: { state: REQUESTED, notes: session('Switching') }, want: 'Switching' },
    'is the last one of an ended session': {
      facts: { state: REQUESTED, notes: session('Failed', true) },
      want: 'Failed',
    },
    'is that of the record if the session ended without a result': {
      facts: {
        state: REQUESTED,
        notes: session('Switching', true),
        record: sourceRecord('migrated'),
        current: pausedForMigration,
      },
      want: 'Committed',
    },
    'is that of the record of an earlier process': {
      facts: { state: REQUESTED, record: sourceRecord('aborted') },
      want: 'Failed',
    },
    'is not that of another migration': {
      facts: { state: { ...REQUESTED, migrationUid: 'm-2' }, notes: session('Failed', true) },
      want: undefined,
    },
    'is kept after the migration is completed': {
      facts: { state: { ...REQUESTED, completed: true }, reported: failed },
      want: 'Failed',
    },
  };
  for (const [sentence, { facts, want }] of Object.entries(phases)) {
    it(sentence, () => assert.equal(progressToReport(aWorld(facts))?.phase, want));
  }
});
