import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunStrategy, StateChangeRequest } from '#api/virtual-machine/schema.ts';
import { wantOf } from '#controllers/vm/run-strategy.ts';
import { requestsOf } from '#controllers/vm/state-change-requests.ts';
import { aVm, aVmi, aWorld, DELETED, NOW_MS } from '#controllers/vm/vm-world.fixture.ts';
import { timestamp } from '#lib/clock.ts';

const PHASES = [undefined, 'Scheduling', 'Running', 'Succeeded', 'Failed'] as const;

// No instance at first, then: unseen, Scheduling, Running, Succeeded, Failed.
const QUIET: Record<RunStrategy, string[]> = {
  Always: ['start', 'stay', 'stay', 'stay', 'stop', 'stop'],
  Halted: ['stay', 'stop', 'stop', 'stop', 'stop', 'stop'],
  Manual: ['stay', 'stay', 'stay', 'stay', 'stay', 'stay'],
  RerunOnFailure: ['stay', 'stay', 'stay', 'stay', 'stop', 'stop'],
  Once: ['start', 'stay', 'stay', 'stay', 'stay', 'stay'],
};
const STOP_ASKED: Record<RunStrategy, string[]> = {
  ...QUIET,
  Always: ['start', 'stop', 'stop', 'stop', 'stop', 'stop'],
  Manual: ['stay', 'stop', 'stop', 'stop', 'stop', 'stop'],
  RerunOnFailure: ['stay', 'stop', 'stop', 'stop', 'stop', 'stop'],
};
const START_ASKED: Record<RunStrategy, string[]> = {
  ...QUIET,
  Halted: ['wake', 'stop', 'stop', 'stop', 'stop', 'stop'],
  Manual: ['start', 'stay', 'stay', 'stay', 'stop', 'stop'],
  RerunOnFailure: ['start', 'stay', 'stay', 'stay', 'stop', 'stop'],
};

const tables: Record<string, [StateChangeRequest[], Record<RunStrategy, string[]>]> = {
  'nothing is asked for': [[], QUIET],
  'a stop is asked for': [[{ action: 'Stop', uid: 'vmi-uid' }], STOP_ASKED],
  'a start is asked for': [[{ action: 'Start' }], START_ASKED],
  'a stop of an earlier instance is asked for': [[{ action: 'Stop', uid: 'earlier' }], QUIET],
};

for (const [name, [stateChangeRequests, table]] of Object.entries(tables)) {
  test(`every strategy with every phase, when ${name}`, () => {
    for (const [strategy, cells] of Object.entries(table) as [RunStrategy, string[]][]) {
      const status = { stateChangeRequests, runStrategy: strategy };
      const vm = aVm({ runStrategy: strategy, status });
      const instances = [undefined, ...PHASES.map((phase) => aVmi(phase))];
      const wants = instances.map((vmi) => wantOf(aWorld({ vm, vmi })).to);
      assert.deepEqual(wants, cells, strategy);
    }
  });
}

test('a VM that somebody holds is stopped as ever, and nothing else is done', () => {
  for (const [stateChangeRequests, table] of Object.values(tables)) {
    for (const [strategy, cells] of Object.entries(table) as [RunStrategy, string[]][]) {
      const vm = aVm({ runStrategy: strategy, status: { stateChangeRequests, runStrategy: strategy } });
      const instances = [undefined, ...PHASES.map((phase) => aVmi(phase))];
      const wants = instances.map((vmi) => wantOf(aWorld({ vm, vmi, lock: { kind: 'snapshot', name: 's' } })).to);
      const want = cells.map((cell) => (cell === 'stop' ? 'stop' : 'stay'));
      assert.deepEqual(wants, want, strategy);
    }
  }
});

test('a restore finds no finished instance in its way that nobody could stop', () => {
  const vm = aVm({ runStrategy: 'Manual' });
  for (const phase of ['Succeeded', 'Failed'] as const) {
    const want = (kind: 'snapshot' | 'restore') => wantOf(aWorld({ vm, vmi: aVmi(phase), lock: { kind, name: 'x' } }));
    assert.deepEqual([want('restore').to, want('snapshot').to], ['stop', 'stay'], phase);
  }
});

test('an instance that is on its way out is waited for', () => {
  for (const runStrategy of Object.keys(QUIET) as RunStrategy[]) {
    const vmi = aVmi('Failed', { metadata: DELETED });
    assert.equal(wantOf(aWorld({ vm: aVm({ runStrategy }), vmi })).to, 'stay', runStrategy);
  }
});

test('an instance of somebody else keeps the VM from everything', () => {
  for (const runStrategy of Object.keys(QUIET) as RunStrategy[]) {
    assert.equal(wantOf(aWorld({ vm: aVm({ runStrategy }), stranger: aVmi('Running') })).to, 'stay', runStrategy);
  }
});

test('RerunOnFailure starts a VM that had no instance under it', () => {
  for (const runStrategy of [undefined, 'Halted', 'Always']) {
    const vm = aVm({ runStrategy: 'RerunOnFailure', status: { runStrategy } });
    assert.equal(wantOf(aWorld({ vm })).to, 'start', runStrategy);
  }
});

test('a failed start is tried again after its time', () => {
  const retryAfterTimestamp = timestamp(NOW_MS + 5000);
  const vm = aVm({ status: { startFailure: { consecutiveFailCount: 1, retryAfterTimestamp } } });
  assert.deepEqual(wantOf(aWorld({ vm })), { to: 'wait', ms: 5000 });
  assert.deepEqual(wantOf(aWorld({ vm, now: NOW_MS + 5000 })), { to: 'start' });
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
  'a stop stands while its instance is there': { queued: [STOP, START], vmi: aVmi('Running'), want: [STOP, START] },
  'a stop is done when its instance is gone': { queued: [STOP, START], want: [START] },
  'a restart is done when another instance is there': {
    queued: [STOP, START],
    vmi: aVmi('Scheduling', { metadata: { uid: 'next' } }),
    want: [],
  },
  'a stop of nothing is nothing': { queued: [{ action: 'Stop' }], vmi: aVmi('Running'), want: [] },
  'a start stands until there is an instance': { queued: [START], want: [START] },
  'a start stands while the old instance goes': {
    queued: [START],
    vmi: aVmi('Running', { metadata: DELETED }),
    want: [START],
  },
  'a finished instance is no start': { queued: [START], vmi: aVmi('Succeeded'), want: [START] },
  'a failure under RerunOnFailure asks for a start': {
    queued: [],
    strategy: 'RerunOnFailure',
    vmi: aVmi('Failed'),
    want: [START],
  },
  'but not where a stop was asked for': {
    queued: [STOP],
    strategy: 'RerunOnFailure',
    vmi: aVmi('Failed'),
    want: [STOP],
  },
  'nor where somebody deletes the instance': {
    queued: [],
    strategy: 'RerunOnFailure',
    vmi: aVmi('Failed', { metadata: DELETED }),
    want: [],
  },
};

for (const [name, { queued, vmi, strategy: runStrategy, want }] of Object.entries(queues)) {
  test(`requests: ${name}`, () => {
    const vm = aVm({ runStrategy, status: { stateChangeRequests: queued } });
    assert.deepEqual(requestsOf(aWorld({ vm, vmi })), want);
  });
}
