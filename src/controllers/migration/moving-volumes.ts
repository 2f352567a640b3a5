/**
 * The node-local volumes that move with the guest. Their annotations record the node that has the data, the node to
 * which it is being copied, and the node with a leftover copy. Pure.
 */
import { claimNameOf } from '#api/storage/claim-names.ts';
import {
  INCOMING_MIGRATION_ANNOTATION,
  INCOMING_NODE_ANNOTATION,
  LEFTOVER_NODE_ANNOTATION,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { isOnOneNode, decideVolumeMoves } from '#api/storage/volume-move.ts';
import { migrationStateOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** Index of volumes by incomingMigrationsOf. */
export const INCOMING_BY_MIGRATION = 'incoming-by-migration';

/** A plan is bounded. The changed volumes trigger the next reconcile, which handles the rest. */
export const VOLUMES_AT_A_TIME = 50;

export function incomingMigrationsOf({ metadata }: PersistentVolume): string[] {
  const uid = metadata.annotations?.[INCOMING_MIGRATION_ANNOTATION];
  return uid === undefined ? [] : [uid];
}

interface MovingClaimVolume {
  /** Name of the volume in the instance. */
  readonly name: string;
  readonly volume: Stored<PersistentVolume>;
}

/** Returns the moving volumes of claims. Other moving disks have no object that could be annotated. */
export function movingVolumes({ vmi, claims }: MigrationWorld): MovingClaimVolume[] {
  if (vmi === undefined) return [];
  const moves = decideVolumeMoves(vmi.spec, (name) => claims.get(name)?.volume);
  return (vmi.spec.volumes ?? []).flatMap((one) => {
    const volume = claims.get(claimNameOf(one) ?? '')?.volume;
    const move = moves.get(one.name);
    if (volume === undefined || move?.is !== 'moves' || move.overlay || !isOnOneNode(volume)) return [];
    return [{ name: one.name, volume }];
  });
}

/** Returns why a volume prevents the migration, or undefined if all volumes can move. */
export function checkVolumesCanMove({ vmi, claims }: MigrationWorld): string | undefined {
  if (vmi === undefined) return undefined;
  for (const move of decideVolumeMoves(vmi.spec, (name) => claims.get(name)?.volume).values()) {
    if (move.is === 'stays') return move.why;
  }
  return undefined;
}

/** Returns why a moving volume is not free yet, or undefined if all are. */
export function checkVolumesFree(world: MigrationWorld): string | undefined {
  const { uid } = world.migration.metadata;
  for (const { name, volume } of movingVolumes(world)) {
    const other = world.otherUserOf(volume.spec.claimRef?.name ?? '');
    if (other !== undefined) return `volume ${name} is also used by VMI ${other}`;
    const { annotations = {} } = volume.metadata;
    const [leftover, incoming] = [annotations[LEFTOVER_NODE_ANNOTATION], annotations[INCOMING_NODE_ANNOTATION]];
    if (leftover) return `volume ${name} waits for node ${leftover} to remove a leftover copy`;
    if (incoming && annotations[INCOMING_MIGRATION_ANNOTATION] !== uid) {
      return `another migration is moving volume ${name} to node ${incoming}`;
    }
    const node = annotations[VOLUME_NODE_ANNOTATION] ?? '';
    const guestNode = migrationStateOf(world).sourceNode ?? world.sourcePod?.spec.nodeName ?? '';
    if (node !== guestNode) return `volume ${name} is on node ${node}, but the guest is on node ${guestNode}`;
  }
  return undefined;
}

/** Marks the moving volumes as incoming. Must precede the announcement to the agents. */
export function announceVolumes(world: MigrationWorld, targetNode: string): Change[] {
  const { uid } = world.migration.metadata;
  return movingVolumes(world).flatMap(({ volume }) =>
    annotateVolume(
      volume,
      { [INCOMING_NODE_ANNOTATION]: targetNode, [INCOMING_MIGRATION_ANNOTATION]: uid },
      `a migration copies the data to node ${targetNode}`,
    ),
  );
}

/** Records that the data has moved to the target node. */
export function moveVolumes(world: MigrationWorld): Change[] {
  const { sourceNode = '', targetNode = '' } = migrationStateOf(world);
  return world.incoming.flatMap((volume) =>
    annotateVolume(
      volume,
      { [VOLUME_NODE_ANNOTATION]: targetNode, [LEFTOVER_NODE_ANNOTATION]: sourceNode, ...NOT_INCOMING },
      `the data has moved from node ${sourceNode} to node ${targetNode}`,
    ),
  );
}

/** Records that the data stays on the source node. The target must not write to its copy any more. */
export function keepVolumes({ incoming }: MigrationWorld): Change[] {
  return incoming.flatMap((volume) => {
    const target = volume.metadata.annotations?.[INCOMING_NODE_ANNOTATION];
    const leftover: AnnotationChanges = target === undefined ? {} : { [LEFTOVER_NODE_ANNOTATION]: target };
    return annotateVolume(volume, { ...leftover, ...NOT_INCOMING }, 'the data stays on its node');
  });
}

type AnnotationChanges = Readonly<Record<string, string | null>>;

const NOT_INCOMING: AnnotationChanges = { [INCOMING_NODE_ANNOTATION]: null, [INCOMING_MIGRATION_ANNOTATION]: null };

function annotateVolume({ metadata }: Stored<PersistentVolume>, annotations: AnnotationChanges, why: string): Change[] {
  const { name, uid, resourceVersion } = metadata;
  if (Object.entries(annotations).every(([key, value]) => (metadata.annotations?.[key] ?? null) === value)) return [];
  // With the observed version: another migration may want the same volume.
  const patch = { type: 'merge' as const, body: { metadata: { resourceVersion, annotations } } };
  return [{ do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why }];
}
