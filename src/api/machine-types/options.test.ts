import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optionsFromEnv, optionsToEnv, parseOptions, type TransitionOptions } from '#api/machine-types/options.ts';
import { options } from '#api/machine-types/transition.fixture.ts';

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
  everything: ALL,
  'only what must be': options(),
};

for (const [name, given] of Object.entries(roundTrips)) {
  test(`${name} comes back from the environment`, () => {
    const env = Object.fromEntries(optionsToEnv(given).map((one) => [one.name, one.value]));
    assert.deepEqual(optionsFromEnv(env), { options: given });
  });
}

test('what is not asked for, and no limit, are not written', () => {
  assert.deepEqual(optionsToEnv(options()), [
    { name: 'JOB_GLOB', value: '*rhel8.*' },
    { name: 'JOB_RESTART_NOW', value: 'false' },
    { name: 'JOB_MAX_RESTARTS', value: '10' },
  ]);
});

const fine: Record<string, [env: Record<string, string>, want: Partial<TransitionOptions>]> = {
  'an empty namespace is all of them': [{ JOB_NAMESPACE: '' }, {}],
  'empty variables are absent ones': [{ JOB_STATE: '', JOB_TARGET: '', JOB_MAX_RESTARTS: '', JOB_RESTART_NOW: '' }, {}],
  'a boolean in any of the spellings of Go': [{ JOB_RESTART_NOW: 'T' }, { restartNow: true }],
  'a false one': [{ JOB_RESTART_NOW: '0' }, { restartNow: false }],
  'a selector of an empty value': [{ JOB_LABEL_SELECTOR: 'k=' }, { labelSelector: 'k=' }],
  'a selector of a set': [{ JOB_LABEL_SELECTOR: 'k in (a,b)' }, { labelSelector: 'k in (a,b)' }],
};

for (const [name, [env, want]] of Object.entries(fine)) {
  test(name, () => {
    assert.deepEqual(optionsFromEnv({ JOB_GLOB: '*rhel8.*', ...env }), { options: options(want) });
  });
}

const faulty: Record<string, [env: Record<string, string>, want: RegExp]> = {
  'no glob': [{ JOB_GLOB: '' }, /^JOB_GLOB: no machine type was specified$/],
  'a malformed glob': [{ JOB_GLOB: '[--' }, /^JOB_GLOB: "\[--": syntax error in pattern$/],
  'an endless glob': [{ JOB_GLOB: '*'.repeat(257) }, /^JOB_GLOB: must be no more than 256 characters$/],
  'a namespace that is none': [
    { JOB_NAMESPACE: 'bad namespace pattern' },
    /^JOB_NAMESPACE: "bad namespace pattern" a lowercase RFC 1123 label must/,
  ],
  'a boolean that is none': [
    { JOB_RESTART_NOW: 'not_a_boolean' },
    /^JOB_RESTART_NOW: "not_a_boolean" is not a boolean$/,
  ],
  'a boolean in a spelling that Go does not know': [{ JOB_RESTART_NOW: 'yes' }, /^JOB_RESTART_NOW: /],
  'a malformed selector': [{ JOB_LABEL_SELECTOR: 'k in (a' }, /^JOB_LABEL_SELECTOR: ./],
  'a name that is none': [{ JOB_NAME_OF_VM: 'No Name' }, /^JOB_NAME_OF_VM: "No Name" a lowercase RFC 1123 subdomain/],
  'a state that is none': [{ JOB_STATE: 'paused' }, /^JOB_STATE: "paused" is neither "running" nor "stopped"$/],
  'a target that is no type': [{ JOB_TARGET: 'q35,accel=kvm' }, /^JOB_TARGET: "q35,accel=kvm" is not a machine type$/],
  'no restart at all': [{ JOB_MAX_RESTARTS: '0' }, /^JOB_MAX_RESTARTS: must be between 1 and 1000$/],
  'too many restarts': [{ JOB_MAX_RESTARTS: '1001' }, /^JOB_MAX_RESTARTS: must be between 1 and 1000$/],
  'a limit that is no number': [{ JOB_MAX_FAILURES: '-1' }, /^JOB_MAX_FAILURES: "-1" is not a number$/],
};

for (const [name, [env, want]] of Object.entries(faulty)) {
  test(`${name} is told by the name of its variable`, () => {
    const result = optionsFromEnv({ JOB_GLOB: '*rhel8.*', ...env });
    assert.ok('faults' in result, 'it is taken');
    assert.equal(result.faults.length, 1);
    assert.match(result.faults[0]!, want);
  });
}

test('all faults are told, by option for those who name them otherwise', () => {
  const texts: Partial<Record<keyof TransitionOptions, string>> = { glob: '[--', maxRestarts: 'ten', namespace: 'A' };
  const { faults } = parseOptions((option) => texts[option]);
  assert.deepEqual(
    faults.map(({ option }) => option),
    ['glob', 'namespace', 'maxRestarts'],
  );
});
