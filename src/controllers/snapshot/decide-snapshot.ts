/** Decides the next step of one VirtualMachineSnapshot. The copies of the disks belong to decide-content.ts. Pure. */
import { VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, isSnapshotComplete } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildVmSnapshotContent } from '#controllers/snapshot/build-content.ts';
import { stageOf, type SnapshotStage } from '#controllers/snapshot/snapshot-stage.ts';
import { deletingStatus, buildSnapshotStatus } from '#controllers/snapshot/snapshot-status.ts';
import { untilDeadlineMs, type SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { EMPTY_PLAN, type Change, type Plan } from '#runtime/plan.ts';
import { requireFinalizer, releaseFinalizer } from '#runtime/finalizer.ts';

type Rule = (world: SnapshotWorld) => Plan | undefined;

/** The first rule that returns a plan decides. */
const rules: readonly Rule[] = [
  removeDeleted, // A snapshot under deletion is not continued.
  holdFirst, // A snapshot gets its finalizer before anything is created for it.
  cleanUpFailed, // A failed snapshot stays failed; only its content is deleted.
];

export function decideSnapshot(world: SnapshotWorld): Plan {
  for (const rule of rules) {
    const plan = rule(world);
    if (plan !== undefined) return plan;
  }
  const stage = stageOf(world);
  const remainingMs = untilDeadlineMs(world.snapshot, world.now);
  const waits = stage.is !== 'taken' && stage.is !== 'failed' && (remainingMs ?? 0) > 0;
  return {
    changes: changesAt(stage, world),
    status: buildSnapshotStatus(world, stage),
    events: eventsAt(stage, world),
    ...(waits ? { requeueAfterMs: Math.ceil(remainingMs ?? 0) } : {}),
  };
}

function changesAt(stage: SnapshotStage, { snapshot, content }: SnapshotWorld): Change[] {
  if (stage.is === 'failed') return content === undefined ? [] : deleteContent(content);
  if (stage.is !== 'ready to create') return [];
  const object = buildVmSnapshotContent(snapshot, stage.held);
  const reason = 'SuccessfulVirtualMachineSnapshotContentCreate';
  const why = `Successfully created VirtualMachineSnapshotContent ${object.metadata.name}`;
  return [{ do: 'create', type: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, object, reason, why }];
}

/** Returns the Event for the end of the snapshot, once. */
function eventsAt(stage: SnapshotStage, { snapshot }: SnapshotWorld): EventNote[] {
  const subject = `VirtualMachineSnapshot ${snapshot.metadata.name} of VM ${snapshot.spec.source.name}`;
  if (stage.is === 'failed') {
    const message = `${subject} failed: ${stage.message}`;
    return [{ type: 'Warning', reason: 'VirtualMachineSnapshotFailed', message }];
  }
  if (stage.is !== 'taken' || isSnapshotComplete(snapshot)) return [];
  return [{ type: 'Normal', reason: 'VirtualMachineSnapshotReady', message: `${subject} is ready` }];
}

/** Deletes the content before the snapshot, unless the policy is Retain. An incomplete content is always deleted. */
function removeDeleted(world: SnapshotWorld): Plan | undefined {
  const { snapshot, content, hasRestore } = world;
  if (!isDeleting(snapshot)) return undefined;
  const isRetained = snapshot.spec.deletionPolicy === 'Retain' && isSnapshotComplete(snapshot);
  if (content !== undefined && !isRetained) return { changes: deleteContent(content), status: deletingStatus(world) };
  // A restore finds the content by the snapshot.
  if (content !== undefined && hasRestore)
    return { changes: [], status: deletingStatus(world), requeueAfterMs: USE_RECHECK_MS };
  const why = isRetained ? 'the content is retained' : 'the content is deleted';
  const release = releaseFinalizer(VM_SNAPSHOT_FINALIZER, VIRTUAL_MACHINE_SNAPSHOTS, snapshot, why);
  return release === undefined ? EMPTY_PLAN : { changes: [release] };
}

function holdFirst({ snapshot }: SnapshotWorld): Plan | undefined {
  const hold = requireFinalizer(VM_SNAPSHOT_FINALIZER, VIRTUAL_MACHINE_SNAPSHOTS, snapshot);
  return hold === undefined ? undefined : { changes: [hold] };
}

function cleanUpFailed({ snapshot, content }: SnapshotWorld): Plan | undefined {
  if (snapshot.status?.phase !== 'Failed') return undefined;
  return content === undefined ? EMPTY_PLAN : { changes: deleteContent(content) };
}

/** Deletes the content. The garbage collector then deletes the copies of the disks. */
function deleteContent(content: Stored<VirtualMachineSnapshotContent>): Change[] {
  if (isDeleting(content)) return [];
  const { name, namespace, uid } = content.metadata;
  const reason = 'SuccessfulVirtualMachineSnapshotContentDelete';
  const why = `Deleted VirtualMachineSnapshotContent ${name}`;
  const type = VIRTUAL_MACHINE_SNAPSHOT_CONTENTS;
  return [{ do: 'delete', type, name: { name, namespace }, uid, reason, why }];
}
