/** What the program says of an environment with which it cannot begin; the rest is told in test/scenarios. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { Environment } from '#transition/job-access.ts';
import { runTransitionProgram } from '#transition/program.ts';

const OWN = { SELFSAME_API_SERVER: 'https://127.0.0.1:1', SELFSAME_TOKEN_FILE: '/t', SELFSAME_CA_FILE: '/ca' };

const cases: Record<string, { env: Environment; want: RegExp }> = {
  'no glob': { env: OWN, want: /^JOB_GLOB: no machine type was specified$/ },
  'a glob that is none': { env: { ...OWN, JOB_GLOB: '[--' }, want: /^JOB_GLOB: "\[--": syntax error in pattern$/ },
  'a namespace that is none': {
    env: { ...OWN, JOB_GLOB: '*', JOB_NAMESPACE: 'bad namespace pattern' },
    want: /^JOB_NAMESPACE: "bad namespace pattern" /,
  },
  'a word that is no boolean': {
    env: { ...OWN, JOB_GLOB: '*', JOB_RESTART_NOW: 'not_a_boolean' },
    want: /^JOB_RESTART_NOW: "not_a_boolean" is not a boolean$/,
  },
  'a selector that is none': {
    env: { ...OWN, JOB_GLOB: '*', JOB_LABEL_SELECTOR: 'a in (' },
    want: /^JOB_LABEL_SELECTOR: /,
  },
  'several faults at once': {
    env: { JOB_STATE: 'x', JOB_MAX_RESTARTS: '0' },
    want: /^(?=.*JOB_GLOB)(?=.*JOB_STATE)(?=.*JOB_MAX_RESTARTS)/,
  },
  'nowhere to ask': { env: { JOB_GLOB: '*' }, want: /^Cannot reach the cluster from inside/ },
  'a token of nobody': { env: { ...OWN, JOB_GLOB: '*' }, want: /^Cannot tell for which Job update-machine-types runs/ },
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
