/** What the agent at the source does and tells. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationProgress } from '#api/migration-state.ts';
import { decideDomain } from '#node/domains/decide-domain.ts';
import { migrationProgress } from '#node/domains/decide-outgoing.ts';
import { UID, TOLD, type Facts, aWorld, named, source, session } from '#node/domains/testing/migration-facts.ts';
import type { DomainState } from '#node/hypervisor/hypervisor.ts';

const still: DomainState = { state: 'paused', why: 'migration' };

const gone: DomainState = { state: 'ended', how: 'migrated' };
const failed: MigrationProgress = { migrationUid: UID, phase: 'Failed', message: 'no' };

const sources: Record<string, Facts & { want: readonly string[] }> = {
  'begins what its instance wants': { state: TOLD, want: ['reportPod Running', 'migrate'] },
  'reads, plugs and asks nothing of a guest that is to go': {
    state: { ...TOLD, targetPod: undefined },
    want: ['reportPod Running'],
  },
  'does not begin what is not its own': { state: { ...TOLD, sourceNode: 'n3' }, want: ['reportPod Running'] },
  'does not begin again what has failed': { state: TOLD, told: failed, want: ['reportPod Running'] },
  'does not begin again what an earlier process gave up, and tells': {
    state: TOLD,
    record: source('aborted'),
    want: ['reportVmi', 'reportPod Running'],
  },
  'begins after an earlier one was given up': {
    state: TOLD,
    record: source('aborted', 'm-0'),
    want: ['reportPod Running', 'migrate'],
  },
  'begins for a guest that its owner has paused': {
    state: TOLD,
    current: { state: 'paused' },
    want: ['reportPod Running', 'migrate'],
  },
  'tells that a guest whose disk is full does not go': {
    state: TOLD,
    current: { state: 'paused', why: 'ioError' },
    want: ['reportVmi', 'reportPod Running'],
  },
  'waits until the guest has let go of a device': {
    state: TOLD,
    leaving: ['disk-a'],
    want: ['reportPod Running', 'lookAgain'],
  },
  'waits not for ever until it has': {
    state: TOLD,
    leaving: ['disk-a'],
    afterMs: 61_000,
    want: ['reportVmi', 'reportPod Running'],
  },
  'tells how far it is': {
    state: TOLD,
    notes: session(),
    record: source('sending'),
    want: ['reportVmi', 'reportPod Running'],
  },
  'gives up when it is asked to': {
    state: { ...TOLD, abortRequested: true },
    notes: session(),
    record: source('sending'),
    want: ['abortMigration'],
  },
  'gives up first when the guest is to stop': {
    state: TOLD,
    notes: session(),
    record: source('sending'),
    deleted: 30,
    want: ['abortMigration'],
  },
  'gives nothing up that has migrated': {
    state: { ...TOLD, abortRequested: true },
    notes: session('Committed'),
    record: source('migrated'),
    current: still,
    deleted: 30,
    want: ['reportVmi', 'reportPod Running committed'],
  },
  'tells that it has gone together with how that went': {
    state: TOLD,
    notes: {
      outgoing: { uid: UID, progress: { migrationUid: UID, phase: 'Switching' }, isOver: false, holdsWord: true },
    },
    record: source('migrated'),
    current: still,
    want: [],
  },
  'takes back what an earlier process sent': { state: TOLD, record: source('sending'), want: ['takeBack'] },
  'does not take back what people gave to the target': {
    state: { ...TOLD, completed: true },
    record: source('sending'),
    current: still,
    want: ['giveUp'],
  },
  'ends what it took back before people gave it to the target': {
    state: { ...TOLD, completed: true },
    record: source('aborted'),
    want: ['giveUp'],
  },
  'ends it also when its pod is deleted, without asking it': {
    state: { ...TOLD, completed: true },
    record: source('aborted'),
    deleted: 30,
    want: ['giveUp'],
  },
  'ends what went on elsewhere and has moved again since': {
    state: { ...TOLD, migrationUid: 'm-2', sourceNode: 'n2', targetNode: 'n3' },
    nodeName: 'n2',
    record: source('sending'),
    current: still,
    want: ['giveUp'],
  },
  'takes back what people gave to the source': {
    state: { ...TOLD, completed: true, failed: true },
    record: source('sending'),
    current: still,
    want: ['takeBack'],
  },
  'takes nothing back for an instance that is gone': {
    noVmi: true,
    record: source('sending'),
    current: still,
    deleted: 30,
    want: ['destroy'],
  },
  'takes nothing back for a pod that has ended': {
    state: TOLD,
    record: source('sending'),
    current: still,
    phase: 'Failed',
    want: ['destroy'],
  },
  'takes nothing back for a pod that is gone': {
    noPod: true,
    record: source('sending'),
    current: still,
    want: ['destroy'],
  },
  'takes it back before it stops it': { state: TOLD, record: source('sending'), deleted: 30, want: ['takeBack'] },
  'keeps what has migrated until that is known': {
    state: TOLD,
    record: source('migrated'),
    current: still,
    want: ['reportVmi', 'reportPod Running committed'],
  },
  'leaves when the controller knows': {
    state: { ...TOLD, completed: true },
    record: source('migrated'),
    current: still,
    want: ['leave'],
  },
  'leaves when the next one has been told': {
    state: { ...TOLD, migrationUid: 'm-2' },
    record: source('migrated'),
    current: still,
    want: ['leave'],
  },
  'tells that the guest has gone': {
    state: TOLD,
    record: source('left'),
    current: gone,
    want: ['reportVmi', 'reportPod Succeeded Migrated committed'],
  },
  'clears away when its pod goes': {
    state: { ...TOLD, completed: true },
    told: { migrationUid: UID, phase: 'Committed' },
    record: source('left'),
    current: gone,
    phase: 'Succeeded',
    deleted: 30,
    want: ['remove', 'removePod'],
  },
};

describe('the agent at the source', () => {
  for (const [what, { want, ...facts }] of Object.entries(sources)) {
    it(what, () => assert.deepEqual(decideDomain(aWorld(facts)).map(named), want));
  }
});

describe('what is told of a migration', () => {
  const phases: Record<string, { facts: Facts; want: string | undefined }> = {
    'what the session says': { facts: { state: TOLD, notes: session('Switching') }, want: 'Switching' },
    'what it said last': { facts: { state: TOLD, notes: session('Failed', true) }, want: 'Failed' },
    'the record, where the session did not say': {
      facts: { state: TOLD, notes: session('Switching', true), record: source('migrated'), current: still },
      want: 'Committed',
    },
    'the record of an earlier process': { facts: { state: TOLD, record: source('aborted') }, want: 'Failed' },
    'nothing of another': {
      facts: { state: { ...TOLD, migrationUid: 'm-2' }, notes: session('Failed', true) },
      want: undefined,
    },
    'as it was told': { facts: { state: { ...TOLD, completed: true }, told: failed }, want: 'Failed' },
  };
  for (const [what, { facts, want }] of Object.entries(phases)) {
    it(what, () => assert.equal(migrationProgress(aWorld(facts))?.phase, want));
  }
});
