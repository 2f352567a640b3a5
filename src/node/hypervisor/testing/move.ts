/** Moves a guest from the hypervisor of a scene to the second one, up to the step that a case wants. */
import assert from 'node:assert/strict';
import { newUid } from '#lib/ids.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { DomainMigration, MovingDisk, OutgoingMigration, TransferredState } from '#node/hypervisor/migration.ts';
import type { DomainInfo, Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { stateOf, type ConformanceScene } from '#node/hypervisor/testing/scene.ts';

export const SOURCE_NODE = 'here';
export const TARGET_NODE = 'there';

/** The points of a migration in order. `received`: the target waits and nothing was sent. */
export const POINTS = ['received', 'sent', 'switched', 'stored', 'migrated', 'committed', 'left'] as const;
export type Point = (typeof POINTS)[number];

export interface MoveOptions {
  readonly definition?: DomainDefinition;
  /** The definition at the target, if it differs. */
  readonly retargeted?: DomainDefinition;
  readonly disks?: readonly MovingDisk[];
  readonly paused?: boolean;
  readonly bytesPerSecond?: number;
}

/** A migration in progress. A case that reopens a hypervisor replaces it here. */
export interface Move {
  readonly id: string;
  readonly uid: string;
  readonly definition: DomainDefinition;
  source: Hypervisor;
  target: Hypervisor;
  readonly outgoing: OutgoingMigration;
  sent: TransferredState;
  at: Point;
}

/** Starts a guest at the source, and lets the target wait for it. */
export async function beginMove(scene: ConformanceScene, options: MoveOptions = {}): Promise<Move> {
  const { definition = scene.definition(), disks = [], paused = false, bytesPerSecond = 0 } = options;
  const [source, target, uid] = [scene.hypervisor, await scene.second(), newUid()];
  const { id } = definition;
  await source.create(definition, { paused });
  const startedAtMs = source.get(id)?.startedAtMs ?? 0;
  const endpoint = await target.receive(
    options.retargeted ?? definition,
    {
      ...{ uid, peer: SOURCE_NODE, startedAtMs, paused, disks },
      transport: source.workingDir(id) === undefined ? { type: 'network', host: '127.0.0.1' } : { type: 'local' },
    },
    {},
  );
  const outgoing: OutgoingMigration = { uid, peer: TARGET_NODE, endpoint, disks, bytesPerSecond, autoConverge: false };
  return { id, uid, definition, source, target, outgoing, sent: {}, at: 'received' };
}

/** Continues the migration up to this point, and asserts that the guest never runs on both sides. */
export async function moveTo(move: Move, point: Point): Promise<void> {
  while (POINTS.indexOf(move.at) < POINTS.indexOf(point)) {
    const next = POINTS[POINTS.indexOf(move.at) + 1] as Point;
    await steps[next](move);
    move.at = next;
    const states = [stateOf(move.source, move.id), stateOf(move.target, move.id)];
    assert.notDeepEqual(states, ['running', 'running']);
  }
}

const steps: Record<Point, (move: Move) => Promise<void>> = {
  received: async () => undefined,
  sent: ({ source, id, outgoing }) => source.send(id, outgoing, { signal: new AbortController().signal }),
  switched: async (move) => void (move.sent = await move.source.switchOver(move.id)),
  stored: ({ target, id, sent }) => target.store(id, sent, {}),
  migrated: ({ source, id }) => source.recordMigrated(id),
  committed: ({ target, id }) => target.commit(id),
  left: ({ source, id }) => source.leave(id),
};

/** Returns what a domain reports of its state and its migration. */
export function migrationStatusOf(hypervisor: Hypervisor, id: string): MigrationStatus {
  const { current, migration, startedAtMs } = hypervisor.get(id) ?? {};
  return { current, migration, startedAtMs };
}

export type MigrationStatus = Partial<Pick<DomainInfo, 'current' | 'migration' | 'startedAtMs'>>;

export function stepsOf({ source, target, id }: Move): (DomainMigration['step'] | undefined)[] {
  return [source.get(id)?.migration?.step, target.get(id)?.migration?.step];
}
