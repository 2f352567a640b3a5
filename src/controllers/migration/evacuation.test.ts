import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVACUATION_ANNOTATION } from '#api/names.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideEvacuation, type EvacuationWorld } from '#controllers/migration/evacuation.ts';
import {
  aMigration,
  aVmi,
  NOW,
  NOW_MS,
  SOURCE,
  TARGET,
  ANNOUNCED,
} from '#controllers/migration/testing/migration-world.ts';
import type { StoredMigration } from '#controllers/migration/migration-world.ts';

const EVACUATING: VmiStatus = { evacuationNodeName: SOURCE };

function aWorld(more: Partial<EvacuationWorld> = {}): EvacuationWorld {
  return { vmi: aVmi(EVACUATING), migrations: [], defaultStrategy: 'LiveMigrate', now: NOW_MS, ...more };
}

function attempt(uid: string, phase: MigrationStatus['phase'], node = SOURCE): StoredMigration {
  const phaseTransitionTimestamps = [{ phase, phaseTransitionTimestamp: NOW }];
  const annotations = { [EVACUATION_ANNOTATION]: node };
  return aMigration({ phase, phaseTransitionTimestamps }, { name: uid, uid, annotations });
}

const evacuatingWith = (strategy: 'None' | 'LiveMigrate' | 'LiveMigrateIfPossible' | 'External') =>
  aVmi(EVACUATING, { evictionStrategy: strategy });

interface Case {
  readonly world: EvacuationWorld;
  readonly createsMigration: boolean;
  readonly requeueAfterMs?: number;
}

const cases: Record<string, Case> = {
  'migrates an instance that has to leave its node': { world: aWorld(), createsMigration: true },
  'ignores an instance that is on another node by now': {
    world: aWorld({ vmi: aVmi({ evacuationNodeName: TARGET }) }),
    createsMigration: false,
  },
  'ignores an instance that cannot be migrated': {
    world: aWorld({ vmi: aVmi({ ...EVACUATING, conditions: [{ type: 'LiveMigratable', status: 'False' }] }) }),
    createsMigration: false,
  },
  'ignores an instance that is already migrating': {
    world: aWorld({ vmi: aVmi({ ...EVACUATING, migrationState: ANNOUNCED }) }),
    createsMigration: false,
  },
  'creates no second migration while one is pending': {
    world: aWorld({ migrations: [attempt('a', 'Pending')] }),
    createsMigration: false,
  },
  'ignores an instance that is being deleted': {
    world: aWorld({ vmi: aVmi(EVACUATING, {}, { deletionTimestamp: NOW }) }),
    createsMigration: false,
  },
  'prefers the strategy of the instance to the default': {
    world: aWorld({ vmi: evacuatingWith('LiveMigrateIfPossible'), defaultStrategy: 'None' }),
    createsMigration: true,
  },
  'does not migrate with the strategy None': {
    world: aWorld({ vmi: evacuatingWith('None') }),
    createsMigration: false,
  },
  'does not migrate with the strategy External': {
    world: aWorld({ vmi: evacuatingWith('External') }),
    createsMigration: false,
  },
  'uses the default if the instance has no strategy': {
    world: aWorld({ defaultStrategy: 'External' }),
    createsMigration: false,
  },
  'waits 20 seconds after a failure': {
    world: aWorld({ migrations: [attempt('a', 'Failed')], now: NOW_MS + 5000 }),
    createsMigration: false,
    requeueAfterMs: 15_000,
  },
  'waits 40 seconds after two failures': {
    world: aWorld({ migrations: [attempt('a', 'Failed'), attempt('b', 'Failed')], now: NOW_MS + 5000 }),
    createsMigration: false,
    requeueAfterMs: 35_000,
  },
  'tries again after the wait': {
    world: aWorld({ migrations: [attempt('a', 'Failed')], now: NOW_MS + 20_000 }),
    createsMigration: true,
  },
  'ignores failures on another node': {
    world: aWorld({ migrations: [attempt('a', 'Failed', 'node-c')] }),
    createsMigration: true,
  },
};

for (const [sentence, { world, createsMigration, requeueAfterMs: againAfterMs }] of Object.entries(cases)) {
  test(sentence, () => {
    const { changes, requeueAfterMs } = decideEvacuation(world);
    assert.equal(changes.length, createsMigration ? 1 : 0);
    assert.equal(requeueAfterMs, againAfterMs);
  });
}

test('a repeated create has the same name, a new attempt after a failure has another', () => {
  const nameOf = (world: EvacuationWorld) => {
    const [change] = decideEvacuation(world).changes;
    assert(change?.do === 'create');
    assert.equal(change.object.metadata.annotations?.[EVACUATION_ANNOTATION], SOURCE);
    return change.object.metadata.name;
  };
  assert.equal(nameOf(aWorld()), nameOf(aWorld()));
  assert.match(nameOf(aWorld()) ?? '', /^kubevirt-evacuation-[0-9a-f]{10}$/);
  const again = aWorld({ migrations: [attempt('a', 'Failed')], now: NOW_MS + 60_000 });
  assert.notEqual(nameOf(again), nameOf(aWorld()));
});
