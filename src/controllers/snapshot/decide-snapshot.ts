/** What is done about one VirtualMachineSnapshot. Copies and the content's own end are left to decide-content.ts. Pure. */
import { VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, wasTaken } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildContent } from '#controllers/snapshot/build-content.ts';
import { stageOf, type Stage } from '#controllers/snapshot/snapshot-stage.ts';
import { deletingStatus, snapshotStatusOf } from '#controllers/snapshot/snapshot-status.ts';
import { remainingMs, type SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import { NOTHING, type Change, type Plan } from '#runtime/plan.ts';
import { holdBy, releaseFrom } from '#runtime/finalizer.ts';

type Rule = (world: SnapshotWorld) => Plan | undefined;

/** The first that has something to say says it. */
const rules: readonly Rule[] = [
  removeDeleted, // A snapshot under deletion takes nothing any more.
  holdFirst, // Nothing is made for a snapshot that could vanish without a word.
  cleanUpFailed, // What failed stays failed; only what it made has to go.
];

export function decideSnapshot(world: SnapshotWorld): Plan {
  for (const rule of rules) {
    const plan = rule(world);
    if (plan !== undefined) return plan;
  }
  const stage = stageOf(world);
  const leftMs = remainingMs(world.snapshot, world.now);
  const waits = stage.is !== 'taken' && stage.is !== 'failed' && (leftMs ?? 0) > 0;
  return {
    changes: changesAt(stage, world),
    status: snapshotStatusOf(world, stage),
    events: eventsAt(stage, world),
    ...(waits ? { requeueAfterMs: Math.ceil(leftMs ?? 0) } : {}),
  };
}

function changesAt(stage: Stage, { snapshot, content }: SnapshotWorld): Change[] {
  if (stage.is === 'failed') return content === undefined ? [] : remove(content);
  if (stage.is !== 'ready to make') return [];
  const object = buildContent(snapshot, stage.held);
  const reason = 'SuccessfulVirtualMachineSnapshotContentCreate';
  const why = `Successfully created VirtualMachineSnapshotContent ${object.metadata.name}`;
  return [{ do: 'create', type: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, object, reason, why }];
}

/** The end is told once, when it comes. */
function eventsAt(stage: Stage, { snapshot }: SnapshotWorld): EventNote[] {
  const what = `VirtualMachineSnapshot ${snapshot.metadata.name} of VM ${snapshot.spec.source.name}`;
  if (stage.is === 'failed') {
    const message = `${what} failed: ${stage.message}`;
    return [{ type: 'Warning', reason: 'VirtualMachineSnapshotFailed', message }];
  }
  if (stage.is !== 'taken' || wasTaken(snapshot)) return [];
  return [{ type: 'Normal', reason: 'VirtualMachineSnapshotReady', message: `${what} is ready` }];
}

/** A content that is kept goes its own ways from then on. Of a snapshot that never was whole nothing is kept. */
function removeDeleted(world: SnapshotWorld): Plan | undefined {
  const { snapshot, content, isRestored } = world;
  if (!isDeleting(snapshot)) return undefined;
  const keeps = snapshot.spec.deletionPolicy === 'Retain' && wasTaken(snapshot);
  if (content !== undefined && !keeps) return { changes: remove(content), status: deletingStatus(world) };
  // A restore finds the content by the snapshot.
  if (content !== undefined && isRestored) return { changes: [], status: deletingStatus(world) };
  const why = keeps ? 'its content is to be kept' : 'nothing that was made for it is left';
  const release = releaseFrom(VM_SNAPSHOT_FINALIZER, VIRTUAL_MACHINE_SNAPSHOTS, snapshot, why);
  return release === undefined ? NOTHING : { changes: [release] };
}

function holdFirst({ snapshot }: SnapshotWorld): Plan | undefined {
  const hold = holdBy(VM_SNAPSHOT_FINALIZER, VIRTUAL_MACHINE_SNAPSHOTS, snapshot);
  return hold === undefined ? undefined : { changes: [hold] };
}

function cleanUpFailed({ snapshot, content }: SnapshotWorld): Plan | undefined {
  if (snapshot.status?.phase !== 'Failed') return undefined;
  return content === undefined ? NOTHING : { changes: remove(content) };
}

/** The copies of its disks go with it. */
function remove(content: Stored<VirtualMachineSnapshotContent>): Change[] {
  if (isDeleting(content)) return [];
  const { name, namespace, uid } = content.metadata;
  const reason = 'SuccessfulVirtualMachineSnapshotContentDelete';
  const why = `Deleted VirtualMachineSnapshotContent ${name}`;
  const type = VIRTUAL_MACHINE_SNAPSHOT_CONTENTS;
  return [{ do: 'delete', type, name: { name, namespace }, uid, reason, why }];
}
