/** The whole status of a VirtualMachineSnapshot, computed from the world and its stage. Pure. */
import { SNAPSHOT_COMPLETED, isSnapshotComplete, type VmSnapshotStatus } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import { indicationsOfContent } from '#controllers/snapshot/build-content.ts';
import { INDICATION_MESSAGES } from '#controllers/snapshot/indications.ts';
import { CONTENT_MISSING, type Explanation, type SnapshotStage } from '#controllers/snapshot/snapshot-stage.ts';
import type { SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import { findCondition, setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { timestamp } from '#lib/clock.ts';

const COMPLETE: Explanation = { reason: SNAPSHOT_COMPLETED, message: 'Operation complete' };
const NOT_READY: Explanation = { reason: 'NotReady', message: 'Not ready' };
const DELETING: Explanation = { reason: 'Deleting', message: 'VM snapshot is deleting' };

export function buildSnapshotStatus(world: SnapshotWorld, stage: SnapshotStage): VmSnapshotStatus {
  switch (stage.is) {
    case 'taken':
      return takenStatus(world);
    case 'failed':
      return failedStatus(world, stage);
    case 'waiting':
      return unfinishedStatus(world, progressing('False', stage));
    case 'copying':
      return unfinishedStatus(world, progressing('True', stage));
    case 'ready to create':
      return unfinishedStatus(world, progressing('True', { reason: 'Preparing', message: 'Source locked' }));
  }
}

/** Keeps the reason of Progressing, from which isSnapshotComplete reads whether the snapshot was complete. */
export function deletingStatus(world: SnapshotWorld): VmSnapshotStatus {
  const { snapshot } = world;
  const before = isSnapshotComplete(snapshot) ? COMPLETE : DELETING;
  const conditions = buildConditions(world, [progressing('False', before), ready('False', DELETING)]);
  return { ...snapshot.status, phase: 'Deleting', conditions };
}

function unfinishedStatus(world: SnapshotWorld, progress: NextCondition): VmSnapshotStatus {
  const { content } = world;
  return {
    ...knownFacts(world),
    ...contentName(world),
    phase: 'InProgress',
    readyToUse: false,
    error: content?.status?.error,
    conditions: buildConditions(world, [progress, ready('False', NOT_READY)]),
  };
}

function takenStatus(world: SnapshotWorld): VmSnapshotStatus {
  const { snapshot, content } = world;
  const readyToUse = content?.status?.readyToUse === true;
  const error = readyToUse ? undefined : contentError(content);
  const readiness =
    error === undefined ? ready('True', COMPLETE) : ready('False', { reason: 'ContentNotReady', message: error });
  const { virtualMachineSnapshotContentName } = snapshot.status ?? {};
  return {
    ...knownFacts(world),
    virtualMachineSnapshotContentName,
    ...contentName(world),
    phase: 'Succeeded',
    readyToUse,
    error: error === undefined ? undefined : errorOf(world, error),
    conditions: buildConditions(world, [progressing('False', COMPLETE), readiness]),
  };
}

function contentError(content: VirtualMachineSnapshotContent | undefined): string {
  if (content === undefined) return CONTENT_MISSING;
  return content.status?.error?.message ?? 'VirtualMachineSnapshotContent is not ready';
}

/** Leaves out the content, because it is deleted. */
function failedStatus(world: SnapshotWorld, explanation: Explanation): VmSnapshotStatus {
  const { creationTime: _, ...facts } = knownFacts(world);
  return {
    ...facts,
    phase: 'Failed',
    readyToUse: false,
    error: errorOf(world, explanation.message),
    conditions: buildConditions(world, [
      progressing('False', explanation),
      ready('False', explanation),
      { type: 'Failure', status: 'True', reason: explanation.reason, message: explanation.message },
    ]),
  };
}

/** Keeps the known facts also after the VM or the content was deleted. */
function knownFacts({ snapshot, content, vm }: SnapshotWorld): VmSnapshotStatus {
  const before = snapshot.status ?? {};
  const { sourceUID = vm?.metadata.uid, creationTime = content?.status?.creationTime } = before;
  const { indications, sourceIndications, snapshotVolumes } = before;
  const facts = content === undefined ? { indications, sourceIndications, snapshotVolumes } : factsOfContent(content);
  return { sourceUID, creationTime, ...facts };
}

function factsOfContent(content: VirtualMachineSnapshotContent): VmSnapshotStatus {
  const { source, volumeBackups = [] } = content.spec;
  const included = new Set(volumeBackups.map(({ volumeName }) => volumeName));
  const all = source.virtualMachine.spec.template.spec?.volumes ?? [];
  const excluded = all.map(({ name }) => name).filter((name) => !included.has(name));
  const indications = indicationsOfContent(content);
  return {
    snapshotVolumes: { includedVolumes: [...included], excludedVolumes: excluded },
    indications,
    sourceIndications: indications.map((indication) => ({ indication, message: INDICATION_MESSAGES[indication] })),
  };
}

function contentName({ content }: SnapshotWorld): VmSnapshotStatus {
  return content === undefined ? {} : { virtualMachineSnapshotContentName: content.metadata.name };
}

/** Returns the error with the time at which it was first reported. */
function errorOf({ snapshot, now }: SnapshotWorld, message: string): VmSnapshotStatus['error'] {
  const before = snapshot.status?.error;
  return before?.message === message ? before : { time: timestamp(now), message };
}

function progressing(status: 'True' | 'False', { reason, message }: Explanation): NextCondition {
  return { type: 'Progressing', status, reason, message };
}

function ready(status: 'True' | 'False', { reason, message }: Explanation): NextCondition {
  return { type: 'Ready', status, reason, message };
}

function buildConditions(
  { snapshot, now }: SnapshotWorld,
  conditions: readonly NextCondition[],
): NonNullable<VmSnapshotStatus['conditions']> {
  const old = (snapshot.status?.conditions ?? []) as Condition[];
  return conditions.flatMap((next) => {
    const before = findCondition(old, next.type);
    return [...setCondition(before === undefined ? [] : [before], next, timestamp(now))];
  });
}
