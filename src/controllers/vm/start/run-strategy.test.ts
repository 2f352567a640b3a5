import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunStrategy, StateChangeRequest } from '#api/virtual-machine/schema.ts';
import { runActionOf } from '#controllers/vm/start/run-strategy.ts';
import { pendingRequests } from '#controllers/vm/start/state-change-requests.ts';
import { aVm, aVmi, aWorld, DELETED, NOW_MS } from '#controllers/vm/testing/vm-world.ts';
import { timestamp } from '#lib/clock.ts';

const PHASES = [undefined, 'Scheduling', 'Running', 'Succeeded', 'Failed'] as const;

// No instance at first, then: unseen, Scheduling, Running, Succeeded, Failed.
const WITHOUT_REQUEST: Record<RunStrategy, string[]> = {
  Always: ['start', 'stay', 'stay', 'stay', 'stop', 'stop'],
  Halted: ['stay', 'stop', 'stop', 'stop', 'stop', 'stop'],
  Manual: ['stay', 'stay', 'stay', 'stay', 'stay', 'stay'],
  RerunOnFailure: ['stay', 'stay', 'stay', 'stay', 'stop', 'stop'],
  Once: ['start', 'stay', 'stay', 'stay', 'stay', 'stay'],
};
const STOP_REQUESTED: Record<RunStrategy, string[]> = {
  ...WITHOUT_REQUEST,
  Always: ['start', 'stop', 'stop', 'stop', 'stop', 'stop'],
  Manual: ['stay', 'stop', 'stop', 'stop', 'stop', 'stop'],
  RerunOnFailure: ['stay', 'stop', 'stop', 'stop', 'stop', 'stop'],
};
const START_REQUESTED: Record<RunStrategy, string[]> = {
  ...WITHOUT_REQUEST,
  Halted: ['setAlways', 'stop', 'stop', 'stop', 'stop', 'stop'],
  Manual: ['start', 'stay', 'stay', 'stay', 'stop', 'stop'],
  RerunOnFailure: ['start', 'stay', 'stay', 'stay', 'stop', 'stop'],
};

const tables: Record<string, [StateChangeRequest[], Record<RunStrategy, string[]>]> = {
  'nothing is requested': [[], WITHOUT_REQUEST],
  'a stop is requested': [[{ action: 'Stop', uid: 'vmi-uid' }], STOP_REQUESTED],
  'a start is requested': [[{ action: 'Start' }], START_REQUESTED],
  'a stop of an earlier instance is requested': [[{ action: 'Stop', uid: 'earlier' }], WITHOUT_REQUEST],
};

for (const [name, [stateChangeRequests, table]] of Object.entries(tables)) {
  test(`every strategy with every phase, when ${name}`, () => {
    for (const [strategy, cells] of Object.entries(table) as [RunStrategy, string[]][]) {
      const status = { stateChangeRequests, runStrategy: strategy };
      const vm = aVm({ runStrategy: strategy, status });
      const instances = [undefined, ...PHASES.map((phase) => aVmi(phase))];
      const wants = instances.map((vmi) => runActionOf(aWorld({ vm, vmi })).kind);
      assert.deepEqual(wants, cells, strategy);
    }
  });
}

test('a VM that a snapshot holds is only stopped', () => {
  for (const [stateChangeRequests, table] of Object.values(tables)) {
    for (const [strategy, cells] of Object.entries(table) as [RunStrategy, string[]][]) {
      const vm = aVm({ runStrategy: strategy, status: { stateChangeRequests, runStrategy: strategy } });
      const instances = [undefined, ...PHASES.map((phase) => aVmi(phase))];
      const wants = instances.map(
        (vmi) => runActionOf(aWorld({ vm, vmi, lock: { kind: 'snapshot', name: 's' } })).kind,
      );
      const want = cells.map((cell) => (cell === 'stop' ? 'stop' : 'stay'));
      assert.deepEqual(wants, want, strategy);
    }
  }
});

test('a finished instance is deleted for a restore, because users cannot stop it', () => {
  const vm = aVm({ runStrategy: 'Manual' });
  for (const phase of ['Succeeded', 'Failed'] as const) {
    const want = (kind: 'snapshot' | 'restore') =>
      runActionOf(aWorld({ vm, vmi: aVmi(phase), lock: { kind, name: 'x' } }));
    assert.deepEqual([want('restore').kind, want('snapshot').kind], ['stop', 'stay'], phase);
  }
});

test('a VM waits for an instance under deletion', () => {
  for (const runStrategy of Object.keys(WITHOUT_REQUEST) as RunStrategy[]) {
    const vmi = aVmi('Failed', { metadata: DELETED });
    assert.equal(runActionOf(aWorld({ vm: aVm({ runStrategy }), vmi })).kind, 'stay', runStrategy);
  }
});

test('an instance of another owner prevents every action', () => {
  for (const runStrategy of Object.keys(WITHOUT_REQUEST) as RunStrategy[]) {
    assert.equal(
      runActionOf(aWorld({ vm: aVm({ runStrategy }), foreignVmi: aVmi('Running') })).kind,
      'stay',
      runStrategy,
    );
  }
});

test('RerunOnFailure starts a VM that had no instance under it', () => {
  for (const runStrategy of [undefined, 'Halted', 'Always']) {
    const vm = aVm({ runStrategy: 'RerunOnFailure', status: { runStrategy } });
    assert.equal(runActionOf(aWorld({ vm })).kind, 'start', runStrategy);
  }
});

test('a failed start is repeated after the backoff', () => {
  const retryAfterTimestamp = timestamp(NOW_MS + 5000);
  const vm = aVm({ status: { startFailure: { consecutiveFailCount: 1, retryAfterTimestamp } } });
  assert.deepEqual(runActionOf(aWorld({ vm })), { kind: 'wait', ms: 5000 });
  assert.deepEqual(runActionOf(aWorld({ vm, now: NOW_MS + 5000 })), { kind: 'start' });
});

const STOP: StateChangeRequest = { action: 'Stop', uid: 'vmi-uid' };
const START: StateChangeRequest = { action: 'Start' };

interface QueueCase {
  readonly queued: StateChangeRequest[];
  readonly vmi?: ReturnType<typeof aVmi>;
  readonly strategy?: RunStrategy;
  readonly want: StateChangeRequest[];
}

const queues: Record<string, QueueCase> = {
  'a stop is pending while its instance exists': { queued: [STOP, START], vmi: aVmi('Running'), want: [STOP, START] },
  'a stop is complete when its instance is gone': { queued: [STOP, START], want: [START] },
  'a restart is complete when another instance exists': {
    queued: [STOP, START],
    vmi: aVmi('Scheduling', { metadata: { uid: 'next' } }),
    want: [],
  },
  'a stop without a uid is complete': { queued: [{ action: 'Stop' }], vmi: aVmi('Running'), want: [] },
  'a start is pending until there is an instance': { queued: [START], want: [START] },
  'a start is pending while the old instance is being deleted': {
    queued: [START],
    vmi: aVmi('Running', { metadata: DELETED }),
    want: [START],
  },
  'a finished instance does not complete a start': { queued: [START], vmi: aVmi('Succeeded'), want: [START] },
  'a failure under RerunOnFailure requests a start': {
    queued: [],
    strategy: 'RerunOnFailure',
    vmi: aVmi('Failed'),
    want: [START],
  },
  'a failure does not request a start if a stop is pending': {
    queued: [STOP],
    strategy: 'RerunOnFailure',
    vmi: aVmi('Failed'),
    want: [STOP],
  },
  'a failure does not request a start if the instance is being deleted': {
    queued: [],
    strategy: 'RerunOnFailure',
    vmi: aVmi('Failed', { metadata: DELETED }),
    want: [],
  },
};

for (const [name, { queued, vmi, strategy: runStrategy, want }] of Object.entries(queues)) {
  test(`requests: ${name}`, () => {
    const vm = aVm({ runStrategy, status: { stateChangeRequests: queued } });
    assert.deepEqual(pendingRequests(aWorld({ vm, vmi })), want);
  });
}
