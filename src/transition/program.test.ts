/** The failures of the program with an invalid environment; test/scenarios tests the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { JobEnvironment } from '#transition/job-access.ts';
import { runTransitionProgram } from '#transition/program.ts';

const OWN = { SELFSAME_API_SERVER: 'https://127.0.0.1:1', SELFSAME_TOKEN_FILE: '/t', SELFSAME_CA_FILE: '/ca' };

const cases: Record<string, { env: JobEnvironment; want: RegExp }> = {
  'no glob': { env: OWN, want: /^JOB_GLOB: no machine type was specified$/ },
  'an invalid glob': { env: { ...OWN, JOB_GLOB: '[--' }, want: /^JOB_GLOB: "\[--": syntax error in pattern$/ },
  'an invalid namespace': {
    env: { ...OWN, JOB_GLOB: '*', JOB_NAMESPACE: 'bad namespace pattern' },
    want: /^JOB_NAMESPACE: "bad namespace pattern" /,
  },
  'an invalid boolean': {
    env: { ...OWN, JOB_GLOB: '*', JOB_RESTART_NOW: 'not_a_boolean' },
    want: /^JOB_RESTART_NOW: "not_a_boolean" is not a boolean$/,
  },
  'an invalid selector': {
    env: { ...OWN, JOB_GLOB: '*', JOB_LABEL_SELECTOR: 'a in (' },
    want: /^JOB_LABEL_SELECTOR: /,
  },
  'several errors at once': {
    env: { JOB_STATE: 'x', JOB_MAX_RESTARTS: '0' },
    want: /^(?=.*JOB_GLOB)(?=.*JOB_STATE)(?=.*JOB_MAX_RESTARTS)/,
  },
  'no API server': { env: { JOB_GLOB: '*' }, want: /^Cannot reach the cluster from inside/ },
  'a token without a pod': { env: { ...OWN, JOB_GLOB: '*' }, want: /^Cannot find the Job of update-machine-types/ },
};
for (const [name, { env, want }] of Object.entries(cases)) {
  test(name, async () => {
    const { signal } = new AbortController();
    const parts = { env, readFile: () => 'a.b.c', clock: systemClock, log: silentLog, signal };
    const outcome = await runTransitionProgram(parts);
    assert.ok(outcome !== 'done');
    assert.match(outcome.failed, want);
  });
}
