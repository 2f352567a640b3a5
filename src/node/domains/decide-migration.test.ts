import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationProgress, MigrationState } from '#api/migration-state.ts';
import { MIGRATION_COMMITTED_CONDITION, MIGRATION_UID_LABEL } from '#api/names.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { decideDomain } from '#node/domains/decide-domain.ts';
import { migrationProgress } from '#node/domains/decide-outgoing.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { reportedStatus } from '#node/domains/vmi-report.ts';
import type { Domain, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';
import type { MigrationNotes } from '#node/migration/migrations.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const NOW = 1_900_000_000_000;
const UID = 'm-1';
const STORED = { uid: 'u', resourceVersion: '1', creationTimestamp: timestamp(NOW), namespace: 'ns' };
const node: DomainWorld['node'] = {
  name: 'n1',
  hostIp: '127.0.0.1',
  capabilities: { machines: [], accelerator: 'tcg', version: 'QEMU 7.2' },
};
const TOLD: MigrationState = {
  migrationUid: UID,
  sourceNode: 'n1',
  targetNode: 'n2',
  targetPod: 'launcher-2',
  startTimestamp: timestamp(NOW),
};
const inspection = { definition: { ...aDefinition(), devices: [] }, leaving: [] };
const reading = { devices: [], hash: 'h1', revision: 7 };

interface Facts {
  readonly state?: MigrationState | undefined;
  readonly told?: MigrationProgress;
  readonly current?: DomainState;
  readonly record?: DomainMigration;
  readonly notes?: MigrationNotes;
  readonly target?: boolean;
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  readonly isCommitted?: boolean;
  readonly deleted?: number;
  readonly noDomain?: boolean;
  readonly noVmi?: boolean;
  readonly noPod?: boolean;
  readonly nodeName?: string;
  readonly leaving?: readonly string[];
  readonly attempt?: DomainWorld['attempt'];
  readonly afterMs?: number;
}

function aPod({ target, phase = 'Running', isCommitted, deleted }: Facts): Stored<Pod> {
  const going = deleted === undefined ? {} : { deletionTimestamp: timestamp(NOW), deletionGracePeriodSeconds: deleted };
  const conditions = isCommitted ? [{ type: MIGRATION_COMMITTED_CONDITION, status: 'True' as const }] : [];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...STORED, name: 'launcher', ...going, ...(target && { labels: { [MIGRATION_UID_LABEL]: UID } }) },
    spec: { containers: [] },
    status: { phase, conditions },
  };
}

function aWorld(facts: Facts): DomainWorld {
  const { state, told, current = { state: 'running' }, record, notes, target, leaving = [], noDomain } = facts;
  const domain: Domain = {
    ...{ id: 'u', name: 'ns/db', machine: 'pc-q35-7.2', startedAtMs: NOW, current, deviceEvents: 0 },
    ...(record && { migration: record }),
  };
  const status = {
    ...{ nodeName: facts.nodeName ?? (target ? 'n2' : 'n1'), phase: 'Running' as const, activePods: { u: '' } },
    ...(state && { migrationState: state }),
    ...(told && { migrationProgress: told }),
  };
  const vmi = {
    ...{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { ...STORED, name: 'db' } },
    ...{ spec: { domain: {} }, status },
  };
  const reported = reportedStatus(vmi, { domain, inspection, reading, hotplug: [], node, nowMs: NOW });
  return {
    pod: facts.noPod ? undefined : aPod(facts),
    vmi: facts.noVmi ? undefined : { ...vmi, status: reported },
    domain: noDomain ? undefined : domain,
    inspection: { ...inspection, leaving },
    ...{ reading, readingDueAtMs: 0, hotplugNotes: new Map(), stopping: undefined, attempt: facts.attempt },
    ...(notes && { migration: notes }),
    ...{ node, nowMs: NOW + (facts.afterMs ?? 0), elapsedMs: 0 },
  };
}

function named(action: DomainAction): string {
  if (action.do !== 'reportPod') return action.do;
  const { phase, reason, notReady, state, committed } = action.view;
  const more = [reason ?? notReady ?? state.waiting?.reason, committed?.is ? 'committed' : undefined];
  return ['reportPod', phase, ...more.filter((word) => word !== undefined)].join(' ');
}

const source = (step: string, uid = UID) => ({ uid, peer: 'n2', role: 'source', step }) as DomainMigration;
const comes = (step: string, uid = UID) => ({ uid, peer: 'n1', role: 'target', step }) as DomainMigration;
const session = (phase: MigrationProgress['phase'] = 'Copying', isOver = false): MigrationNotes => ({
  outgoing: { uid: UID, progress: { migrationUid: UID, phase }, isOver },
});
const incoming: MigrationNotes = { incoming: { uid: UID } };
const asked = (more: object): MigrationNotes => ({
  question: { uid: UID, isAsked: false, tries: 1, dueAtMs: 0, ...more },
});
const still: DomainState = { state: 'paused', why: 'migration' };
const arriving: DomainState = { state: 'incoming' };
const crashed: DomainState = { state: 'ended', how: 'crashed' };
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

describe('the agent at the source', () => {
  for (const [what, { want, ...facts }] of Object.entries(sources)) {
    it(what, () => assert.deepEqual(decideDomain(aWorld(facts)).map(named), want));
  }
});

describe('the agent at the target', () => {
  for (const [what, { want, ...facts }] of Object.entries(targets)) {
    const world = aWorld({ ...facts, target: true, state: { ...TOLD, completed: false } });
    it(what, () => assert.deepEqual(decideDomain(world).map(named), want));
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
