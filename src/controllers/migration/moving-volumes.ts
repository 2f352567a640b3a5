/**
 * Volumes whose data lies on the node of the guest and goes along: which they are, and how it is noted on them where
 * their data is, may be, and is no more. Pure.
 */
import { claimNameOf } from '#api/claim-names.ts';
import {
  INCOMING_MIGRATION_ANNOTATION,
  INCOMING_NODE_ANNOTATION,
  LEFTOVER_NODE_ANNOTATION,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { liesOnNode, volumeMoves } from '#api/volume-move.ts';
import { recordOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** An index of volumes, by what incomingMigrationsOf gives. */
export const INCOMING_BY_MIGRATION = 'incoming-by-migration';

/** A plan is bounded; the rest comes with the next look, for a volume that has changed asks for one. */
export const VOLUMES_AT_A_TIME = 50;

export function incomingMigrationsOf({ metadata }: PersistentVolume): string[] {
  const uid = metadata.annotations?.[INCOMING_MIGRATION_ANNOTATION];
  return uid === undefined ? [] : [uid];
}

export interface MovingVolume {
  /** In the instance. */
  readonly name: string;
  readonly volume: Stored<PersistentVolume>;
}

/** Of claims only: what else goes along has no object that could be noted on. */
export function movingVolumes({ vmi, claims }: MigrationWorld): MovingVolume[] {
  if (vmi === undefined) return [];
  const moves = volumeMoves(vmi.spec, (name) => claims.get(name)?.volume);
  return (vmi.spec.volumes ?? []).flatMap((one) => {
    const volume = claims.get(claimNameOf(one) ?? '')?.volume;
    const move = moves.get(one.name);
    if (volume === undefined || move?.is !== 'moves' || move.overlay || !liesOnNode(volume)) return [];
    return [{ name: one.name, volume }];
  });
}

/** Why the guest cannot go at all. */
export function stayingVolume({ vmi, claims }: MigrationWorld): string | undefined {
  if (vmi === undefined) return undefined;
  for (const move of volumeMoves(vmi.spec, (name) => claims.get(name)?.volume).values()) {
    if (move.is === 'stays') return move.why;
  }
  return undefined;
}

/** What others have to be done with first. */
export function busyVolume(world: MigrationWorld): string | undefined {
  const { uid } = world.migration.metadata;
  for (const { name, volume } of movingVolumes(world)) {
    const other = world.otherUserOf(volume.spec.claimRef?.name ?? '');
    if (other !== undefined) return `volume ${name} is used by the VMI ${other}, too`;
    const { annotations = {} } = volume.metadata;
    const [leftover, incoming] = [annotations[LEFTOVER_NODE_ANNOTATION], annotations[INCOMING_NODE_ANNOTATION]];
    if (leftover) return `volume ${name} waits for node ${leftover} to remove the copy that it has left`;
    if (incoming && annotations[INCOMING_MIGRATION_ANNOTATION] !== uid) {
      return `volume ${name} is on its way to node ${incoming} by another migration`;
    }
    const node = annotations[VOLUME_NODE_ANNOTATION] ?? '';
    const here = recordOf(world).sourceNode ?? world.sourcePod?.spec.nodeName ?? '';
    if (node !== here) return `volume ${name} lies on node ${node}, and the guest is on node ${here}`;
  }
  return undefined;
}

/** Before the agents are told. */
export function announceVolumes(world: MigrationWorld, targetNode: string): Change[] {
  const { uid } = world.migration.metadata;
  return movingVolumes(world).flatMap(({ volume }) =>
    annotating(
      volume,
      { [INCOMING_NODE_ANNOTATION]: targetNode, [INCOMING_MIGRATION_ANNOTATION]: uid },
      `its data is about to go to node ${targetNode}`,
    ),
  );
}

/** The data is at the target now. */
export function moveVolumes(world: MigrationWorld): Change[] {
  const { sourceNode = '', targetNode = '' } = recordOf(world);
  return world.incoming.flatMap((volume) =>
    annotating(
      volume,
      { [VOLUME_NODE_ANNOTATION]: targetNode, [LEFTOVER_NODE_ANNOTATION]: sourceNode, ...OVER },
      `its data has gone from node ${sourceNode} to node ${targetNode}`,
    ),
  );
}

/** The data is where it was. For when nobody writes at the target any more. */
export function keepVolumes({ incoming }: MigrationWorld): Change[] {
  return incoming.flatMap((volume) => {
    const target = volume.metadata.annotations?.[INCOMING_NODE_ANNOTATION];
    const leftover: Notes = target === undefined ? {} : { [LEFTOVER_NODE_ANNOTATION]: target };
    return annotating(volume, { ...leftover, ...OVER }, 'its data stays where it is');
  });
}

type Notes = Readonly<Record<string, string | null>>;

const OVER: Notes = { [INCOMING_NODE_ANNOTATION]: null, [INCOMING_MIGRATION_ANNOTATION]: null };

function annotating({ metadata }: Stored<PersistentVolume>, annotations: Notes, why: string): Change[] {
  const { name, uid, resourceVersion } = metadata;
  if (Object.entries(annotations).every(([key, value]) => (metadata.annotations?.[key] ?? null) === value)) return [];
  // In the very state that was seen: another migration may want it, too.
  const patch = { type: 'merge' as const, body: { metadata: { resourceVersion, annotations } } };
  return [{ do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why }];
}
