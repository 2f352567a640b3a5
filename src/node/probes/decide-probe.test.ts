import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Probe } from '#api/domain/probe.ts';
import { afterAnswer, firstState, firstWaitMs, timingOf, type ProbeKind } from '#node/probes/decide-probe.ts';

interface Case {
  readonly kind: ProbeKind;
  readonly probe?: Probe;
  readonly wasReady?: boolean;
  /** + answered, - failed. */
  readonly answers: string;
  /** The verdict after each: g or b. */
  readonly want: string;
}

const cases: Record<string, Case> = {
  'a guest is not ready before it says so': { kind: 'readiness', answers: '', want: '' },
  'one answer makes it ready': { kind: 'readiness', answers: '-+', want: 'bg' },
  'three failures in a row make it unready': { kind: 'readiness', answers: '+--+---', want: 'ggggggb' },
  'as many answers as it wants': {
    kind: 'readiness',
    probe: { successThreshold: 2 },
    answers: '+-++',
    want: 'bbbg',
  },
  'as many failures as it wants': { kind: 'readiness', probe: { failureThreshold: 1 }, answers: '+-+', want: 'gbg' },
  'what was found ready stays so until the contrary is shown': {
    kind: 'readiness',
    wasReady: true,
    answers: '---',
    want: 'ggb',
  },
  'a guest lives until the contrary is shown': { kind: 'liveness', answers: '--+---', want: 'gggggb' },
  'nought is the default': {
    kind: 'liveness',
    probe: { failureThreshold: 0, successThreshold: 0 },
    answers: '---',
    want: 'ggb',
  },
};
for (const [name, { kind, probe = {}, wasReady, answers, want }] of Object.entries(cases)) {
  test(name, () => {
    const timing = timingOf(probe, kind);
    let state = firstState(kind, wasReady);
    assert.equal(state.verdict, kind === 'liveness' || wasReady === true ? 'good' : 'bad');
    const verdicts = [...answers].map((answer) => {
      state = afterAnswer(state, answer === '+', timing);
      return state.verdict[0];
    });
    assert.equal(verdicts.join(''), want);
  });
}

test('times are those of Kubernetes where nothing is said', () => {
  const { initialDelayMs, periodMs, timeoutMs } = timingOf({ tcpSocket: { port: 1 } }, 'readiness');
  assert.deepEqual([initialDelayMs, periodMs, timeoutMs], [0, 10_000, 1000]);
});

test('the first delay counts from the start of the guest, whoever asks', () => {
  const timing = timingOf({ initialDelaySeconds: 60 }, 'liveness');
  assert.deepEqual(
    [firstWaitMs(timing, 0), firstWaitMs(timing, 45_000), firstWaitMs(timing, 90_000)],
    [60_000, 15_000, 0],
  );
});
