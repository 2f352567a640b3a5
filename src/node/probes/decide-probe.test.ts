import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Probe } from '#api/domain/probe.ts';
import { applyResult, initialState, initialWaitMs, probeTiming, type ProbeKind } from '#node/probes/decide-probe.ts';

interface Case {
  readonly kind: ProbeKind;
  readonly probe?: Probe;
  readonly wasReady?: boolean;
  /** + for a success, - for a failure. */
  readonly results: string;
  /** The status after each result: h for healthy, u for unhealthy. */
  readonly want: string;
}

const cases: Record<string, Case> = {
  'a guest is not ready before the first success': { kind: 'readiness', results: '', want: '' },
  'one success makes a guest ready': { kind: 'readiness', results: '-+', want: 'uh' },
  'three consecutive failures make a guest unready': { kind: 'readiness', results: '+--+---', want: 'hhhhhhu' },
  'successThreshold sets the number of successes': {
    kind: 'readiness',
    probe: { successThreshold: 2 },
    results: '+-++',
    want: 'uuuh',
  },
  'failureThreshold sets the number of failures': {
    kind: 'readiness',
    probe: { failureThreshold: 1 },
    results: '+-+',
    want: 'huh',
  },
  'a guest that an earlier agent found ready stays ready until the probe fails': {
    kind: 'readiness',
    wasReady: true,
    results: '---',
    want: 'hhu',
  },
  'a guest is alive until three consecutive failures': { kind: 'liveness', results: '--+---', want: 'hhhhhu' },
  'thresholds of 0 are the defaults': {
    kind: 'liveness',
    probe: { failureThreshold: 0, successThreshold: 0 },
    results: '---',
    want: 'hhu',
  },
};
for (const [sentence, { kind, probe = {}, wasReady, results, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const timing = probeTiming(probe, kind);
    let state = initialState(kind, wasReady);
    assert.equal(state.status, kind === 'liveness' || wasReady === true ? 'healthy' : 'unhealthy');
    const statuses = [...results].map((result) => {
      state = applyResult(state, result === '+', timing);
      return state.status[0];
    });
    assert.equal(statuses.join(''), want);
  });
}

test("the default times are Kubernetes'", () => {
  const { initialDelayMs, periodMs, timeoutMs } = probeTiming({ tcpSocket: { port: 1 } }, 'readiness');
  assert.deepEqual([initialDelayMs, periodMs, timeoutMs], [0, 10_000, 1000]);
});

test('the initial delay counts from the start of the guest', () => {
  const timing = probeTiming({ initialDelaySeconds: 60 }, 'liveness');
  assert.deepEqual(
    [initialWaitMs(timing, 0), initialWaitMs(timing, 45_000), initialWaitMs(timing, 90_000)],
    [60_000, 15_000, 0],
  );
});
