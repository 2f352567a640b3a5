import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVACUATION_ANNOTATION } from '#api/names.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideEvacuation, type EvacuationWorld } from '#controllers/migration/evacuation.ts';
import { aMigration, aVmi, NOW, NOW_MS, SOURCE, TARGET, TOLD } from '#controllers/migration/migration-world.fixture.ts';
import type { Migration } from '#controllers/migration/migration-world.ts';

const LEAVING: VmiStatus = { evacuationNodeName: SOURCE };

function aWorld(more: Partial<EvacuationWorld> = {}): EvacuationWorld {
  return { vmi: aVmi(LEAVING), migrations: [], defaultStrategy: 'LiveMigrate', now: NOW_MS, ...more };
}

function tried(uid: string, phase: MigrationStatus['phase'], node = SOURCE): Migration {
  const phaseTransitionTimestamps = [{ phase, phaseTransitionTimestamp: NOW }];
  const annotations = { [EVACUATION_ANNOTATION]: node };
  return aMigration({ phase, phaseTransitionTimestamps }, { name: uid, uid, annotations });
}

const leaves = (strategy: 'None' | 'LiveMigrate' | 'LiveMigrateIfPossible' | 'External') =>
  aVmi(LEAVING, { evictionStrategy: strategy });

interface Case {
  readonly world: EvacuationWorld;
  readonly asks: boolean;
  readonly againAfterMs?: number;
}

const cases: Record<string, Case> = {
  'an instance that is to leave its node goes': { world: aWorld(), asks: true },
  'one that is on another node by now has left': {
    world: aWorld({ vmi: aVmi({ evacuationNodeName: TARGET }) }),
    asks: false,
  },
  'one that cannot be migrated stays': {
    world: aWorld({ vmi: aVmi({ ...LEAVING, conditions: [{ type: 'LiveMigratable', status: 'False' }] }) }),
    asks: false,
  },
  'one that migrates already is left alone': {
    world: aWorld({ vmi: aVmi({ ...LEAVING, migrationState: TOLD }) }),
    asks: false,
  },
  'one whose migration waits is asked for once': {
    world: aWorld({ migrations: [tried('a', 'Pending')] }),
    asks: false,
  },
  'one that goes itself is left alone': {
    world: aWorld({ vmi: aVmi(LEAVING, {}, { deletionTimestamp: NOW }) }),
    asks: false,
  },
  'its own wish counts': {
    world: aWorld({ vmi: leaves('LiveMigrateIfPossible'), defaultStrategy: 'None' }),
    asks: true,
  },
  'None is no wish to be migrated': { world: aWorld({ vmi: leaves('None') }), asks: false },
  'External is for others to do': { world: aWorld({ vmi: leaves('External') }), asks: false },
  'the wish for all counts where it has none': { world: aWorld({ defaultStrategy: 'External' }), asks: false },
  'after a failure it waits a while': {
    world: aWorld({ migrations: [tried('a', 'Failed')], now: NOW_MS + 5000 }),
    asks: false,
    againAfterMs: 15_000,
  },
  'and longer after two': {
    world: aWorld({ migrations: [tried('a', 'Failed'), tried('b', 'Failed')], now: NOW_MS + 5000 }),
    asks: false,
    againAfterMs: 35_000,
  },
  'then it goes': { world: aWorld({ migrations: [tried('a', 'Failed')], now: NOW_MS + 20_000 }), asks: true },
  'what failed at another node does not count': {
    world: aWorld({ migrations: [tried('a', 'Failed', 'node-c')] }),
    asks: true,
  },
};

for (const [sentence, { world, asks, againAfterMs }] of Object.entries(cases)) {
  test(sentence, () => {
    const { changes, requeueAfterMs } = decideEvacuation(world);
    assert.equal(changes.length, asks ? 1 : 0);
    assert.equal(requeueAfterMs, againAfterMs);
  });
}

test('asked twice it is one migration, asked again after a failure it is another', () => {
  const nameOf = (world: EvacuationWorld) => {
    const [change] = decideEvacuation(world).changes;
    assert(change?.do === 'create');
    assert.equal(change.object.metadata.annotations?.[EVACUATION_ANNOTATION], SOURCE);
    return change.object.metadata.name;
  };
  assert.equal(nameOf(aWorld()), nameOf(aWorld()));
  assert.match(nameOf(aWorld()) ?? '', /^kubevirt-evacuation-[0-9a-f]{10}$/);
  const again = aWorld({ migrations: [tried('a', 'Failed')], now: NOW_MS + 60_000 });
  assert.notEqual(nameOf(again), nameOf(aWorld()));
});
