/**
 * Decides about migrations of a guest from this node to another one, and which progress to report. Pure. source-session.ts
 * carries out the steps; this module decides whether a session starts or is aborted, and how to end one that an earlier
 * process left behind.
 *
 *   requested ─► migrate ─ session ─┬─► record `migrated` ─► leave, when the controller concluded or the target committed
 *                                   └─► record `aborted`
 *   record `sending` without a session: takeBack, unless the guest belongs to the target (an administrator can decide that
 *   while this node is unreachable), or its pod or instance is gone
 */
import { isMigrating, type MigrationProgress } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { timestamp } from '#lib/clock.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { isInstanceOnNode } from '#node/guests/guest-objects.ts';
import { isDomainMoving, type DomainInfo } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';

/** A migration waits this long for the guest to release a device that is being unplugged. */
const DEVICE_RELEASE_TIMEOUT_MS = 60_000;
/** A fallback in case the event of the release is missed. */
const DEVICE_RELEASE_RECHECK_MS = 5000;
const AGENT_RESTARTED = 'the agent of the source node was restarted';

/**
 * Reports whether a migration of the guest is in progress, or may be. Meanwhile its devices are not plugged, resized,
 * copied or read.
 */
export function isMoving(domain: DomainInfo | undefined, vmi: VirtualMachineInstance | undefined): boolean {
  return isMigrating(vmi?.status?.migrationState) || isDomainMoving(domain);
}

type OutgoingDecision =
  /** These actions only; nothing else is done for the guest. */
  | { readonly is: 'exclusive'; readonly actions: readonly DomainAction[] }
  /** The guest is only reported. */
  | { readonly is: 'reportOnly' };

/** Returns undefined if no outgoing migration concerns the guest. */
export function decideOutgoing(world: DomainWorld): OutgoingDecision | undefined {
  const { domain, vmi, pod, migration: notes } = world;
  if (domain === undefined) return undefined;
  const session = notes?.outgoing?.isOver === false ? notes.outgoing : undefined;
  if (session?.withholdsReport === true) return { is: 'exclusive', actions: [] };
  const record = domain.migration?.role === 'source' ? domain.migration : undefined;
  const hasMigrated = record?.step === 'migrated' || record?.step === 'left';
  if (session !== undefined && !(hasMigrated && record.uid === session.uid)) {
    const why = abortReason(world, session.uid);
    return why === undefined ? { is: 'reportOnly' } : { is: 'exclusive', actions: [{ do: 'abortMigration', why }] };
  }
  if (record === undefined || domain.current.state === 'ended') return undefined;
  if (!hasMigrated) return decideInterrupted(world, record);
  if (session !== undefined) return { is: 'reportOnly' };
  const state = vmi?.status?.migrationState;
  const isConcluded = pod === undefined || state?.migrationUid !== record.uid || state.completed === true;
  return isConcluded ? { is: 'exclusive', actions: [{ do: 'leave' }] } : { is: 'reportOnly' };
}

/** Decides about a migration without a session, which the record of this node does not show as migrated. */
function decideInterrupted(world: DomainWorld, record: DomainMigration): OutgoingDecision | undefined {
  const { pod, vmi } = world;
  const exclusive = (action: DomainAction) => ({ is: 'exclusive', actions: [action] }) as const;
  if (belongsToTarget(world, record)) return exclusive({ do: 'destroyStale', to: record.peer });
  if (record.step !== 'sending') return undefined;
  const isWanted = pod !== undefined && !hasEnded(pod) && vmi !== undefined;
  // Without a pod or an instance the guest is not resumed: it may have continued on another node since.
  return exclusive(
    isWanted
      ? { do: 'takeBack' }
      : { do: 'destroy', why: 'its migration was interrupted, and its pod or instance is gone' },
  );
}

/** Reports whether the instance's status says that the guest is at the target, regardless of the local record. */
function belongsToTarget({ vmi, node }: DomainWorld, { uid }: DomainMigration): boolean {
  const { migrationState: state, nodeName } = vmi?.status ?? {};
  if (vmi === undefined || state === undefined) return false;
  if (state.migrationUid === uid) return state.completed === true && state.failed !== true;
  return Boolean(nodeName) && !isInstanceOnNode(vmi, node.name);
}

function abortReason({ pod, vmi }: DomainWorld, uid: string): string | undefined {
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return 'the pod of the guest was deleted';
  if (vmi === undefined || vmi.metadata.deletionTimestamp !== undefined) return 'the instance was deleted';
  const { phase, migrationState: state } = vmi.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed') return 'the instance has ended';
  if (state?.migrationUid !== uid || state.completed === true) return 'the migration is no longer requested';
  return state.abortRequested === true ? 'the migration was cancelled' : undefined;
}

/** Decides whether to start a requested migration. Carried out after the guest was reported. */
export function decideMigrate(world: DomainWorld): readonly DomainAction[] {
  if (!isRequested(world) || refusalReason(world) !== undefined) return [];
  if (isReleasingDevice(world)) return [{ do: 'recheck', afterMs: DEVICE_RELEASE_RECHECK_MS }];
  return [{ do: 'migrate' }];
}

/** Reports whether a migration from this node is requested, and neither started nor finished. */
function isRequested({ vmi, domain, node, migration: notes }: DomainWorld): boolean {
  const { migrationState: state, migrationProgress: reported } = vmi?.status ?? {};
  if (state === undefined || domain === undefined || !isMigrating(state) || state.sourceNode !== node.name)
    return false;
  if (state.targetNode === undefined || state.targetPod === undefined) return false;
  const uid = state.migrationUid;
  const isReported =
    reported?.migrationUid === uid && (reported?.phase === 'Failed' || reported?.phase === 'Committed');
  const isRecorded = domain.migration?.role === 'source' && domain.migration.uid === uid;
  return !isReported && !isRecorded && notes?.outgoing?.uid !== uid;
}

function isReleasingDevice({ inspection }: DomainWorld): boolean {
  return (inspection?.unplugging ?? []).length > 0;
}

/** Returns why a requested migration cannot start, or undefined if it can. */
function refusalReason(world: DomainWorld): string | undefined {
  const { vmi, domain, nowMs } = world;
  const { abortRequested, startTimestamp } = vmi?.status?.migrationState ?? {};
  if (abortRequested === true) return 'the migration was cancelled';
  const { current } = domain ?? {};
  if (current?.state === 'ended') return 'the guest has ended';
  if (current?.state === 'paused' && current.why === 'ioError') {
    return 'the guest is paused because one of its disks cannot be written';
  }
  const waitedMs = startTimestamp === undefined ? 0 : nowMs - Date.parse(startTimestamp);
  if (isReleasingDevice(world) && waitedMs > DEVICE_RELEASE_TIMEOUT_MS)
    return 'the guest has not released a device that is being unplugged';
  return undefined;
}

/** Returns the progress of the migration in the instance's status. Until it has one, an earlier migration's is kept. */
export function progressToReport(world: DomainWorld): MigrationProgress | undefined {
  const { vmi, domain, nowMs, migration: notes } = world;
  const { migrationState: state, migrationProgress: reported } = vmi?.status ?? {};
  const uid = state?.migrationUid;
  if (uid === undefined) return reported;
  const { outgoing } = notes ?? {};
  const before = reported?.migrationUid === uid ? reported : undefined;
  const ended = (phase: 'Failed' | 'Committed', message?: string): MigrationProgress => {
    if (before?.phase === phase) return before;
    const startTimestamp = before?.startTimestamp ?? timestamp(nowMs);
    const endTimestamp = timestamp(nowMs);
    return { ...before, migrationUid: uid, phase, startTimestamp, endTimestamp, ...(message && { message }) };
  };
  const record = domain?.migration?.uid === uid ? domain.migration : undefined;
  const isEnd = outgoing?.progress.phase === 'Failed' || outgoing?.progress.phase === 'Committed';
  if (outgoing?.uid === uid && (!outgoing.isOver || isEnd)) return outgoing.progress;
  if (record?.step === 'migrated' || record?.step === 'left') return ended('Committed');
  if (record?.step === 'committed' || record?.step === 'arrived') return addDowntime(ended('Committed'), world);
  if (record?.step === 'aborted') return ended('Failed', AGENT_RESTARTED);
  const why = isRequested(world) ? refusalReason(world) : undefined;
  return why === undefined ? reported : ended('Failed', why);
}

/**
 * Adds the downtime as the target measured it. The source may not know it, or may not report it anymore because the instance
 * is on the target.
 */
function addDowntime(progress: MigrationProgress, { migration: notes }: DomainWorld): MigrationProgress {
  const { arrival } = notes ?? {};
  const downtimeMs = arrival?.uid === progress.migrationUid ? arrival.downtimeMs : undefined;
  return progress.downtimeMs !== undefined || downtimeMs === undefined ? progress : { ...progress, downtimeMs };
}
