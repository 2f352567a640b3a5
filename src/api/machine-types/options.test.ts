import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optionsFromEnv, optionsToEnv, parseOptions, type TransitionOptions } from '#api/machine-types/options.ts';
import { options } from '#api/machine-types/testing/sample-transition.ts';

const ALL: TransitionOptions = {
  glob: '*rhel-8.*',
  namespace: 'blue',
  labelSelector: 'tier in (a,b),!old',
  restartNow: true,
  name: 'db',
  state: 'running',
  target: 'pc-q35-rhel9.2.0',
  maxRestarts: 3,
  maxFailures: 0,
};

const roundTrips: Record<string, TransitionOptions> = {
  'all options': ALL,
  'the required options': options(),
};

for (const [name, given] of Object.entries(roundTrips)) {
  test(`the environment preserves ${name}`, () => {
    const env = Object.fromEntries(optionsToEnv(given).map((one) => [one.name, one.value]));
    assert.deepEqual(optionsFromEnv(env), { options: given });
  });
}

test('unset options and infinite limits are not written', () => {
  assert.deepEqual(optionsToEnv(options()), [
    { name: 'JOB_GLOB', value: '*rhel8.*' },
    { name: 'JOB_RESTART_NOW', value: 'false' },
    { name: 'JOB_MAX_RESTARTS', value: '10' },
  ]);
});

const valid: Record<string, [env: Record<string, string>, want: Partial<TransitionOptions>]> = {
  'an empty namespace means all namespaces': [{ JOB_NAMESPACE: '' }, {}],
  'empty variables count as absent': [{ JOB_STATE: '', JOB_TARGET: '', JOB_MAX_RESTARTS: '', JOB_RESTART_NOW: '' }, {}],
  'true in a spelling of Go': [{ JOB_RESTART_NOW: 'T' }, { restartNow: true }],
  'false in a spelling of Go': [{ JOB_RESTART_NOW: '0' }, { restartNow: false }],
  'a selector with an empty value': [{ JOB_LABEL_SELECTOR: 'k=' }, { labelSelector: 'k=' }],
  'a set-based selector': [{ JOB_LABEL_SELECTOR: 'k in (a,b)' }, { labelSelector: 'k in (a,b)' }],
};

for (const [name, [env, want]] of Object.entries(valid)) {
  test(name, () => {
    assert.deepEqual(optionsFromEnv({ JOB_GLOB: '*rhel8.*', ...env }), { options: options(want) });
  });
}

const invalid: Record<string, [env: Record<string, string>, want: RegExp]> = {
  'a missing glob': [{ JOB_GLOB: '' }, /^JOB_GLOB: no machine type was specified$/],
  'a malformed glob': [{ JOB_GLOB: '[--' }, /^JOB_GLOB: "\[--": syntax error in pattern$/],
  'a very long glob': [{ JOB_GLOB: '*'.repeat(257) }, /^JOB_GLOB: must be no more than 256 characters$/],
  'an invalid namespace': [
    { JOB_NAMESPACE: 'bad namespace pattern' },
    /^JOB_NAMESPACE: "bad namespace pattern" a lowercase RFC 1123 label must/,
  ],
  'an invalid boolean': [{ JOB_RESTART_NOW: 'not_a_boolean' }, /^JOB_RESTART_NOW: "not_a_boolean" is not a boolean$/],
  'a boolean in a spelling that Go does not accept': [{ JOB_RESTART_NOW: 'yes' }, /^JOB_RESTART_NOW: /],
  'a malformed selector': [{ JOB_LABEL_SELECTOR: 'k in (a' }, /^JOB_LABEL_SELECTOR: ./],
  'an invalid name': [{ JOB_NAME_OF_VM: 'No Name' }, /^JOB_NAME_OF_VM: "No Name" a lowercase RFC 1123 subdomain/],
  'an invalid state': [{ JOB_STATE: 'paused' }, /^JOB_STATE: "paused" is neither "running" nor "stopped"$/],
  'an invalid target': [{ JOB_TARGET: 'q35,accel=kvm' }, /^JOB_TARGET: "q35,accel=kvm" is not a machine type$/],
  'a limit of zero restarts': [{ JOB_MAX_RESTARTS: '0' }, /^JOB_MAX_RESTARTS: must be between 1 and 1000$/],
  'too many restarts': [{ JOB_MAX_RESTARTS: '1001' }, /^JOB_MAX_RESTARTS: must be between 1 and 1000$/],
  'a limit that is not a number': [{ JOB_MAX_FAILURES: '-1' }, /^JOB_MAX_FAILURES: "-1" is not a number$/],
};

for (const [name, [env, want]] of Object.entries(invalid)) {
  test(`refuses ${name} with the name of its variable`, () => {
    const result = optionsFromEnv({ JOB_GLOB: '*rhel8.*', ...env });
    assert.ok('faults' in result, 'it is accepted');
    assert.equal(result.faults.length, 1);
    assert.match(result.faults[0]!, want);
  });
}

test('parseOptions reports all errors by option', () => {
  const texts: Partial<Record<keyof TransitionOptions, string>> = { glob: '[--', maxRestarts: 'ten', namespace: 'A' };
  const { faults } = parseOptions((option) => texts[option]);
  assert.deepEqual(
    faults.map(({ option }) => option),
    ['glob', 'namespace', 'maxRestarts'],
  );
});
