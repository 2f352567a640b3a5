import assert from 'node:assert/strict';
import { test } from 'node:test';
import { integerFlag, listFlag, pairsFlag, parseArgs, switchFlag, textFlag } from '#cli/parsing/flags.ts';

const table = {
  namespace: textFlag({ name: 'namespace', short: 'n', help: '' }, 'string'),
  client: switchFlag({ name: 'client', short: 'c', help: '' }),
  grace: integerFlag({ name: 'grace-period', help: '' }, undefined),
};

const good: Record<string, { argv: string[]; want: object; args?: string[] }> = {
  'no arguments': { argv: [], want: {} },
  'a value in its own word': { argv: ['--namespace', 'a', 'vm'], want: { namespace: 'a' }, args: ['vm'] },
  'a value after an equals sign': { argv: ['--namespace=a=b'], want: { namespace: 'a=b' } },
  'a value that looks like a flag': { argv: ['--grace-period', '-1'], want: { grace: -1 } },
  'a letter': { argv: ['-n', 'a'], want: { namespace: 'a' } },
  'a letter with its value': { argv: ['-na'], want: { namespace: 'a' } },
  'a letter with an equals sign': { argv: ['-n=a'], want: { namespace: 'a' } },
  'letters together': { argv: ['-cn', 'a'], want: { client: true, namespace: 'a' } },
  'a switch': { argv: ['--client', 'true'], want: { client: true }, args: ['true'] },
  'a switch that is off': { argv: ['--client=false'], want: { client: false } },
  'the last one wins': { argv: ['-n', 'a', '-n', 'b'], want: { namespace: 'b' } },
  'nothing after two dashes': { argv: ['--', '--client'], want: {}, args: ['--client'] },
};
for (const [name, { argv, want, args = [] }] of Object.entries(good)) {
  test(name, () => {
    const fallbacks = { namespace: undefined, client: false, grace: undefined };
    assert.deepEqual(parseArgs(table, argv), { flags: { ...fallbacks, ...want }, args });
  });
}

const bad: Record<string, { argv: string[]; message: string }> = {
  'an unknown flag': { argv: ['--nope=1'], message: 'unknown flag: --nope' },
  'a flag with a mistake in it': {
    argv: ['--namepsace', 'a'],
    message: 'unknown flag: --namepsace; did you mean --namespace?',
  },
  'a property of Object.prototype': { argv: ['--constructor'], message: 'unknown flag: --constructor' },
  'an unknown letter': { argv: ['-cx'], message: "unknown shorthand flag: 'x' in -cx" },
  'no value': { argv: ['--namespace'], message: 'flag needs an argument: --namespace' },
  'no value for a letter': { argv: ['-n'], message: "flag needs an argument: 'n' in -n" },
  'an invalid number': {
    argv: ['--grace-period=soon'],
    message: 'invalid argument "soon" for "--grace-period" flag: strconv.ParseInt: parsing "soon": invalid syntax',
  },
  'neither true nor false': {
    argv: ['--client=maybe'],
    message: 'invalid argument "maybe" for "-c, --client" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
  },
};
for (const [name, { argv, message }] of Object.entries(bad)) {
  test(`refuses ${name}`, () => assert.throws(() => parseArgs(table, argv), { name: 'CommandError', message }));
}

test('a list contains all occurrences in order, and is empty by default', () => {
  const table = { claim: listFlag({ name: 'claim', short: 'c', help: '' }, 'disk=claim') };
  assert.deepEqual(parseArgs(table, ['--claim', 'a=b', 'x', '--claim=c=d', '-c', 'e=f']).flags.claim, [
    'a=b',
    'c=d',
    'e=f',
  ]);
  assert.deepEqual(parseArgs(table, []).flags.claim, []);
});

test('pairs are collected from all occurrences; the last value of a key wins', () => {
  const table = { selector: pairsFlag({ name: 'selector', help: '' }, 'stringToString') };
  const pairs = (...argv: string[]) => parseArgs(table, argv).flags.selector;
  assert.equal(pairs(), undefined);
  assert.deepEqual(pairs('--selector', 'a=b, c=d=e', '--selector=a=z,f='), { a: 'z', c: 'd=e', f: '' });
  assert.deepEqual(Object.keys(pairs('--selector=__proto__=x') ?? {}), ['__proto__']);
  const message = 'invalid argument "a=b,c" for "--selector" flag: c must be formatted as key=value';
  assert.throws(() => pairs('--selector=a=b,c'), { name: 'CommandError', message });
});
