/** The whole status of a VirtualMachineSnapshot, computed from the world and how far it is. Pure. */
import { SNAPSHOT_COMPLETED, wasTaken, type SnapshotStatus } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import { indicationsIn } from '#controllers/snapshot/build-content.ts';
import { INDICATION_MESSAGES } from '#controllers/snapshot/indications.ts';
import { CONTENT_GONE, type Said, type Stage } from '#controllers/snapshot/snapshot-stage.ts';
import type { SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import { findCondition, setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { timestamp } from '#lib/clock.ts';

const COMPLETE: Said = { reason: SNAPSHOT_COMPLETED, message: 'Operation complete' };
const NOT_READY: Said = { reason: 'NotReady', message: 'Not ready' };
const DELETING: Said = { reason: 'Deleting', message: 'VM snapshot is deleting' };

export function snapshotStatusOf(world: SnapshotWorld, stage: Stage): SnapshotStatus {
  switch (stage.is) {
    case 'taken':
      return takenStatus(world);
    case 'failed':
      return failedStatus(world, stage);
    case 'waiting':
      return unfinishedStatus(world, progressing('False', stage));
    case 'copying':
      return unfinishedStatus(world, progressing('True', stage));
    case 'ready to make':
      return unfinishedStatus(world, progressing('True', { reason: 'Preparing', message: 'Source locked' }));
  }
}

/** What it says of itself stays, so that it can be told whether it was whole before. */
export function deletingStatus(world: SnapshotWorld): SnapshotStatus {
  const { snapshot } = world;
  const before = wasTaken(snapshot) ? COMPLETE : DELETING;
  const conditions = conditionsOf(world, [progressing('False', before), ready('False', DELETING)]);
  return { ...snapshot.status, phase: 'Deleting', conditions };
}

function unfinishedStatus(world: SnapshotWorld, progress: NextCondition): SnapshotStatus {
  const { content } = world;
  return {
    ...factsOf(world),
    ...contentFacts(world),
    phase: 'InProgress',
    readyToUse: false,
    error: content?.status?.error,
    conditions: conditionsOf(world, [progress, ready('False', NOT_READY)]),
  };
}

function takenStatus(world: SnapshotWorld): SnapshotStatus {
  const { snapshot, content } = world;
  const readyToUse = content?.status?.readyToUse === true;
  const fault = readyToUse ? undefined : faultOf(content);
  const readiness =
    fault === undefined ? ready('True', COMPLETE) : ready('False', { reason: 'ContentNotReady', message: fault });
  const { virtualMachineSnapshotContentName } = snapshot.status ?? {};
  return {
    ...factsOf(world),
    virtualMachineSnapshotContentName,
    ...contentFacts(world),
    phase: 'Succeeded',
    readyToUse,
    error: fault === undefined ? undefined : errorOf(world, fault),
    conditions: conditionsOf(world, [progressing('False', COMPLETE), readiness]),
  };
}

function faultOf(content: VirtualMachineSnapshotContent | undefined): string {
  if (content === undefined) return CONTENT_GONE;
  return content.status?.error?.message ?? 'VirtualMachineSnapshotContent is not ready';
}

/** What was made for it goes, and so it is named no more. */
function failedStatus(world: SnapshotWorld, said: Said): SnapshotStatus {
  const { creationTime: _, ...facts } = factsOf(world);
  return {
    ...facts,
    phase: 'Failed',
    readyToUse: false,
    error: errorOf(world, said.message),
    conditions: conditionsOf(world, [
      progressing('False', said),
      ready('False', said),
      { type: 'Failure', status: 'True', reason: said.reason, message: said.message },
    ]),
  };
}

/** What is known once stays known, also when the VM or the content is gone. */
function factsOf({ snapshot, content, vm }: SnapshotWorld): SnapshotStatus {
  const before = snapshot.status ?? {};
  const { sourceUID = vm?.metadata.uid, creationTime = content?.status?.creationTime } = before;
  const { indications, sourceIndications, snapshotVolumes } = before;
  const circumstances =
    content === undefined ? { indications, sourceIndications, snapshotVolumes } : circumstancesIn(content);
  return { sourceUID, creationTime, ...circumstances };
}

function circumstancesIn(content: VirtualMachineSnapshotContent): SnapshotStatus {
  const { source, volumeBackups = [] } = content.spec;
  const included = new Set(volumeBackups.map(({ volumeName }) => volumeName));
  const all = source.virtualMachine.spec.template.spec?.volumes ?? [];
  const excluded = all.map(({ name }) => name).filter((name) => !included.has(name));
  const indications = indicationsIn(content);
  return {
    snapshotVolumes: { includedVolumes: [...included], excludedVolumes: excluded },
    indications,
    sourceIndications: indications.map((indication) => ({ indication, message: INDICATION_MESSAGES[indication] })),
  };
}

function contentFacts({ content }: SnapshotWorld): SnapshotStatus {
  return content === undefined ? {} : { virtualMachineSnapshotContentName: content.metadata.name };
}

/** With the time at which it was said first. */
function errorOf({ snapshot, now }: SnapshotWorld, message: string): SnapshotStatus['error'] {
  const before = snapshot.status?.error;
  return before?.message === message ? before : { time: timestamp(now), message };
}

function progressing(status: 'True' | 'False', { reason, message }: Said): NextCondition {
  return { type: 'Progressing', status, reason, message };
}

function ready(status: 'True' | 'False', { reason, message }: Said): NextCondition {
  return { type: 'Ready', status, reason, message };
}

function conditionsOf(
  { snapshot, now }: SnapshotWorld,
  stated: readonly NextCondition[],
): NonNullable<SnapshotStatus['conditions']> {
  const old = (snapshot.status?.conditions ?? []) as Condition[];
  return stated.flatMap((next) => {
    const before = findCondition(old, next.type);
    return [...setCondition(before === undefined ? [] : [before], next, timestamp(now))];
  });
}
