/**
 * What is to be done for a guest that its instance wants on another node, and what is told of it. Pure. The steps themselves
 * are source-session.ts's; here is decided whether one begins, is given up, or what an earlier process left of one.
 *
 *   told ─► migrate ─ session ─┬─► record `migrated` ─► leave, when the controller or the target says that it is over
 *                              └─► record `aborted`
 *   no session, record `sending`: takeBack, unless the guest has been given to the target meanwhile (people may, where
 *   this node was gone), or nobody is there any more for whom it would go on
 */
import { isMigrating, type MigrationProgress } from '#api/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { timestamp } from '#lib/clock.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { isOn } from '#node/domains/instance-node.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';

/** A guest that was asked to let go of a device gets this long before it may go. */
export const LETTING_GO_MS = 60_000;
/** In case that it lets go without our hearing of it. */
const LOOK_AGAIN_MS = 5000;
const RESTARTED = 'the agent of the source node was restarted';

/** Whether the guest is on its way, or may be: then nobody plugs, grows, copies or reads anything of it. */
export function isMoving(domain: Domain | undefined, vmi: VirtualMachineInstance | undefined): boolean {
  if (isMigrating(vmi?.status?.migrationState)) return true;
  const { migration, current } = domain ?? {};
  if (current?.state === 'incoming') return true;
  return migration?.role === 'source' && migration.step !== 'aborted';
}

export type OutgoingDecision =
  /** Nothing else is done for the guest meanwhile, except that it is reported where its pod is not to go. */
  | { readonly is: 'first'; readonly actions: readonly DomainAction[] }
  /** It is reported, and nothing more. */
  | { readonly is: 'held' };

/** Undefined: it is a guest as any other. */
export function decideOutgoing(world: DomainWorld): OutgoingDecision | undefined {
  const { domain, vmi, pod, migration: notes } = world;
  if (domain === undefined) return undefined;
  const session = notes?.outgoing?.isOver === false ? notes.outgoing : undefined;
  if (session?.holdsWord === true) return { is: 'first', actions: [] };
  const record = domain.migration?.role === 'source' ? domain.migration : undefined;
  const hasMigrated = record?.step === 'migrated' || record?.step === 'left';
  if (session !== undefined && !(hasMigrated && record.uid === session.uid)) {
    const why = whyAborted(world, session.uid);
    return why === undefined ? { is: 'held' } : { is: 'first', actions: [{ do: 'abortMigration', why }] };
  }
  if (record === undefined || domain.current.state === 'ended') return undefined;
  if (!hasMigrated) return decideCutOff(world, record);
  if (session !== undefined) return { is: 'held' };
  const state = vmi?.status?.migrationState;
  const isWoundUp = pod === undefined || state?.migrationUid !== record.uid || state.completed === true;
  return isWoundUp ? { is: 'first', actions: [{ do: 'leave' }] } : { is: 'held' };
}

/** No session goes on, and it has not migrated by what is written here. */
function decideCutOff(world: DomainWorld, record: DomainMigration): OutgoingDecision | undefined {
  const { pod, vmi } = world;
  const first = (action: DomainAction) => ({ is: 'first', actions: [action] }) as const;
  if (wasGivenAway(world, record)) return first({ do: 'giveUp', to: record.peer });
  if (record.step !== 'sending') return undefined;
  const isWanted = pod !== undefined && !hasEnded(pod) && vmi !== undefined;
  // It stands still: who knows what went on elsewhere since.
  return first(isWanted ? { do: 'takeBack' } : { do: 'destroy', why: 'nobody wants it back from a migration' });
}

/** Whatever is written here: the instance has its guest elsewhere. */
function wasGivenAway({ vmi, node }: DomainWorld, { uid }: DomainMigration): boolean {
  const { migrationState: state, nodeName } = vmi?.status ?? {};
  if (vmi === undefined || state === undefined) return false;
  if (state.migrationUid === uid) return state.completed === true && state.failed !== true;
  return Boolean(nodeName) && !isOn(vmi, node.name);
}

function whyAborted({ pod, vmi }: DomainWorld, uid: string): string | undefined {
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return 'the pod of the guest was deleted';
  if (vmi === undefined || vmi.metadata.deletionTimestamp !== undefined) return 'the instance was deleted';
  const { phase, migrationState: state } = vmi.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed') return 'the instance has come to its end';
  if (state?.migrationUid !== uid || state.completed === true) return 'it is not wanted any more';
  return state.abortRequested === true ? 'it was cancelled' : undefined;
}

/** Begins it; after the guest has been reported, for a guest that just runs. */
export function decideMigrate(world: DomainWorld): readonly DomainAction[] {
  if (!isWanted(world) || refusal(world) !== undefined) return [];
  if (isLettingGo(world)) return [{ do: 'lookAgain', afterMs: LOOK_AGAIN_MS }];
  return [{ do: 'migrate' }];
}

/** Told to us, and neither begun nor over. */
function isWanted({ vmi, domain, node, migration: notes }: DomainWorld): boolean {
  const { migrationState: state, migrationProgress: told } = vmi?.status ?? {};
  if (state === undefined || domain === undefined || !isMigrating(state) || state.sourceNode !== node.name)
    return false;
  if (state.targetNode === undefined || state.targetPod === undefined) return false;
  const uid = state.migrationUid;
  const isTold = told?.migrationUid === uid && (told?.phase === 'Failed' || told?.phase === 'Committed');
  const isRecorded = domain.migration?.role === 'source' && domain.migration.uid === uid;
  return !isTold && !isRecorded && notes?.outgoing?.uid !== uid;
}

function isLettingGo({ inspection }: DomainWorld): boolean {
  return (inspection?.leaving ?? []).length > 0;
}

/** Why it does not even begin. */
function refusal(world: DomainWorld): string | undefined {
  const { vmi, domain, nowMs } = world;
  const { abortRequested, startTimestamp } = vmi?.status?.migrationState ?? {};
  if (abortRequested === true) return 'it was cancelled';
  const { current } = domain ?? {};
  if (current?.state === 'ended') return 'the guest has come to its end';
  if (current?.state === 'paused' && current.why === 'ioError') {
    return 'the guest is paused, because one of its disks cannot be written';
  }
  const waitsMs = startTimestamp === undefined ? 0 : nowMs - Date.parse(startTimestamp);
  if (isLettingGo(world) && waitsMs > LETTING_GO_MS) return 'the guest does not let go of a device that is unplugged';
  return undefined;
}

/** What is told of the migration that the instance names; what was told of earlier ones stands until then. */
export function migrationProgress(world: DomainWorld): MigrationProgress | undefined {
  const { vmi, domain, nowMs, migration: notes } = world;
  const { migrationState: state, migrationProgress: told } = vmi?.status ?? {};
  const uid = state?.migrationUid;
  if (uid === undefined) return told;
  const { outgoing } = notes ?? {};
  const before = told?.migrationUid === uid ? told : undefined;
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
  if (record?.step === 'committed' || record?.step === 'arrived') return arrived(ended('Committed'), world);
  if (record?.step === 'aborted') return ended('Failed', RESTARTED);
  const why = isWanted(world) ? refusal(world) : undefined;
  return why === undefined ? told : ended('Failed', why);
}

/** The source may not have heard how long it took, or may not say so any more: the instance is ours then. */
function arrived(progress: MigrationProgress, { migration: notes }: DomainWorld): MigrationProgress {
  const { arrival } = notes ?? {};
  const downtimeMs = arrival?.uid === progress.migrationUid ? arrival.downtimeMs : undefined;
  return progress.downtimeMs !== undefined || downtimeMs === undefined ? progress : { ...progress, downtimeMs };
}
