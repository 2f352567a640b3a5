/** The dialect of pflag, which kubectl and KubeVirt's virtctl use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError } from '#lib/command-line/command-error.ts';
import {
  checkedFlag,
  choiceFlag,
  commaListFlag,
  integerFlag,
  listFlag,
  pairsFlag,
  requiredFlag,
  switchFlag,
  textFlag,
} from '#lib/command-line/flag.ts';
import { asksForHelp, parseArgs } from '#lib/command-line/parse-args.ts';

const table = {
  namespace: textFlag({ name: 'namespace', short: 'n', help: '' }, 'string'),
  client: switchFlag({ name: 'client', short: 'c', help: '' }),
  all: switchFlag({ name: 'all', short: 'A', help: '' }),
  grace: integerFlag({ name: 'grace-period', help: '' }, undefined),
  old: textFlag({ name: 'namespaces-old', help: '', hidden: true }, 'string'),
};
const FALLBACKS = { namespace: undefined, client: false, all: false, grace: undefined, old: undefined };

const good: Record<string, { argv: string[]; want: object; args?: string[] }> = {
  'no arguments': { argv: [], want: {} },
  'a value in its own word': { argv: ['--namespace', 'a', 'vm'], want: { namespace: 'a' }, args: ['vm'] },
  'a value after an equals sign': { argv: ['--namespace=a=b'], want: { namespace: 'a=b' } },
  'an empty value': { argv: ['--namespace='], want: { namespace: '' } },
  'a value that looks like a flag': { argv: ['--grace-period', '-1'], want: { grace: -1 } },
  'two dashes as a value': { argv: ['--namespace', '--', 'a'], want: { namespace: '--' }, args: ['a'] },
  'a letter': { argv: ['-n', 'a'], want: { namespace: 'a' } },
  'a letter with its value': { argv: ['-na'], want: { namespace: 'a' } },
  'a letter with an equals sign': { argv: ['-n=a'], want: { namespace: 'a' } },
  'letters together': { argv: ['-cn', 'a'], want: { client: true, namespace: 'a' } },
  'letters together with a value': { argv: ['-cAna'], want: { client: true, all: true, namespace: 'a' } },
  'a letter of a switch that is off': { argv: ['-c=false'], want: { client: false } },
  'a switch, which takes no word': { argv: ['--client', 'true'], want: { client: true }, args: ['true'] },
  'a switch that is off': { argv: ['--client=false'], want: { client: false } },
  "a switch in Go's words": { argv: ['--client=F', '--all=T'], want: { client: false, all: true } },
  'the last occurrence': { argv: ['-n', 'a', '-n', 'b'], want: { namespace: 'b' } },
  'flags between arguments': { argv: ['x', '-c', 'y'], want: { client: true }, args: ['x', 'y'] },
  'a single dash as an argument': { argv: ['-', '-c'], want: { client: true }, args: ['-'] },
  'no flag after two dashes': { argv: ['--', '--client'], want: {}, args: ['--client'] },
  'a hidden flag': { argv: ['--namespaces-old', 'a'], want: { old: 'a' } },
  'a hexadecimal number': { argv: ['--grace-period=0x10'], want: { grace: 16 } },
  'a number with a sign': { argv: ['--grace-period=+5'], want: { grace: 5 } },
};
for (const [name, { argv, want, args = [] }] of Object.entries(good)) {
  test(`accepts ${name}`, () => {
    assert.deepEqual(parseArgs(table, argv), { flags: { ...FALLBACKS, ...want }, args, missing: [] });
  });
}

const bad: Record<string, { argv: string[]; message: string }> = {
  'an unknown flag': { argv: ['--nope=1'], message: 'unknown flag: --nope' },
  'a flag with a mistake in it': {
    argv: ['--namepsace', 'a'],
    message: 'unknown flag: --namepsace; did you mean --namespace?',
  },
  'the beginning of a flag': { argv: ['--cli'], message: 'unknown flag: --cli; did you mean --client?' },
  'a negated switch': { argv: ['--no-client'], message: 'unknown flag: --no-client' },
  'a property of Object.prototype': { argv: ['--constructor'], message: 'unknown flag: --constructor' },
  'three dashes': { argv: ['---client'], message: 'bad flag syntax: ---client' },
  'a flag without a name': { argv: ['--=a'], message: 'bad flag syntax: --=a' },
  'an unknown letter': { argv: ['-cx'], message: "unknown shorthand flag: 'x' in -cx" },
  'no value': { argv: ['--namespace'], message: 'flag needs an argument: --namespace' },
  'no value for a letter': { argv: ['-cn'], message: "flag needs an argument: 'n' in -cn" },
  'an invalid number': {
    argv: ['--grace-period=soon'],
    message: 'invalid argument "soon" for "--grace-period" flag: strconv.ParseInt: parsing "soon": invalid syntax',
  },
  'a number out of range': {
    argv: ['--grace-period=99999999999999999999'],
    message:
      'invalid argument "99999999999999999999" for "--grace-period" flag: strconv.ParseInt: parsing "99999999999999999999": value out of range',
  },
  'neither true nor false': {
    argv: ['--client=maybe'],
    message: 'invalid argument "maybe" for "-c, --client" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
  },
};
for (const [name, { argv, message }] of Object.entries(bad)) {
  test(`refuses ${name}`, () => assert.throws(() => parseArgs(table, argv), { name: 'UsageError', message }));
}

test('without interspersed flags, the first argument ends the flags', () => {
  const { flags, args } = parseArgs(table, ['-c', 'verb', '-A', '--nope', '--'], { interspersed: false });
  assert.deepEqual(flags, { ...FALLBACKS, client: true });
  assert.deepEqual(args, ['verb', '-A', '--nope', '--']);
});

test('a list has all occurrences in order, commas included, and is empty by default', () => {
  const lists = { claim: listFlag({ name: 'claim', short: 'c', help: '' }, 'disk=claim') };
  assert.deepEqual(parseArgs(lists, ['--claim', 'a=b', 'x', '--claim=c,d', '-c', 'e']).flags.claim, [
    'a=b',
    'c,d',
    'e',
  ]);
  assert.deepEqual(parseArgs(lists, []).flags.claim, []);
});

const commaLists: Record<string, { argv: string[]; want: string[] | undefined }> = {
  nothing: { argv: [], want: undefined },
  'an empty list': { argv: ['--user='], want: [] },
  'values between commas': { argv: ['--user=a,b'], want: ['a', 'b'] },
  'the values of all occurrences': { argv: ['--user=a,b', '--user', 'c'], want: ['a', 'b', 'c'] },
  'empty values': { argv: ['--user=a,,b,'], want: ['a', '', 'b', ''] },
  'commas in quotes': { argv: ['--user="a,b",c'], want: ['a,b', 'c'] },
  'quotes in quotes': { argv: ['--user="a""b"'], want: ['a"b'] },
};
for (const [name, { argv, want }] of Object.entries(commaLists)) {
  test(`a comma list accepts ${name}`, () => {
    const lists = { user: commaListFlag({ name: 'user', help: '' }, 'strings') };
    assert.deepEqual(parseArgs(lists, argv).flags.user, want);
  });
}

const pairLists: Record<string, { argv: string[]; want: object | undefined }> = {
  nothing: { argv: [], want: undefined },
  'a pair': { argv: ['--selector', 'a=b'], want: { a: 'b' } },
  'several pairs': { argv: ['--selector', 'a=b, c=d=e'], want: { a: 'b', c: 'd=e' } },
  'an empty value': { argv: ['--selector=a=b,f='], want: { a: 'b', f: '' } },
  'the last value of a key': { argv: ['--selector', 'a=b,c=d', '--selector=a=z'], want: { a: 'z', c: 'd' } },
  'a comma in a single value': { argv: ['--selector=a=b,c'], want: { a: 'b,c' } },
  'quotes around a pair': { argv: ['--selector="a=b,c",d=e'], want: { a: 'b,c', d: 'e' } },
};
for (const [name, { argv, want }] of Object.entries(pairLists)) {
  test(`pairs accept ${name}`, () => {
    const pairs = { selector: pairsFlag({ name: 'selector', help: '' }, 'stringToString') };
    assert.deepEqual(parseArgs(pairs, argv).flags.selector, want);
  });
}

test('pairs have own properties only, and refuse a word without a value', () => {
  const pairs = { selector: pairsFlag({ name: 'selector', help: '' }, 'stringToString') };
  assert.deepEqual(Object.keys(parseArgs(pairs, ['--selector=__proto__=x']).flags.selector ?? {}), ['__proto__']);
  for (const [text, why] of [
    ['c', 'c must be formatted as key=value'],
    ['a=b,d=e,c', 'c must be formatted as key=value'],
    ['a=b,"d=e', 'a quote is not closed or not escaped'],
  ] as const) {
    const message = `invalid argument ${JSON.stringify(text)} for "--selector" flag: ${why}`;
    assert.throws(() => parseArgs(pairs, ['--selector', text]), { name: 'UsageError', message });
  }
});

const settings = {
  port: checkedFlag({
    ...{ name: 'port', help: '', variable: 'APP_PORT', value: 'PORT', fallback: 1 },
    mustBe: 'an even number',
    read: (text) => (Number(text) % 2 === 0 ? Number(text) : undefined),
  }),
  mode: choiceFlag({ name: 'mode', help: '', value: 'MODE' }, ['a', 'b'], 'a'),
  to: requiredFlag({ name: 'to', help: '', variable: 'APP_TO' }, 'FILE'),
};
const sources: Record<string, { argv?: string[]; env?: Record<string, string>; want: object; missing?: string[] }> = {
  'the fallback': { want: { port: 1, mode: 'a', to: '' }, missing: ['to'] },
  'the variable': { env: { APP_PORT: '4', APP_TO: 'x', APP_MODE: 'b' }, want: { port: 4, mode: 'a', to: 'x' } },
  'the command line before the variable': {
    argv: ['--port=2', '--to', 'y'],
    env: { APP_PORT: 'nonsense', APP_TO: 'x' },
    want: { port: 2, mode: 'a', to: 'y' },
  },
};
for (const [name, { argv = [], env = {}, want, missing = [] }] of Object.entries(sources)) {
  test(`a value comes from ${name}`, () => {
    assert.deepEqual(parseArgs(settings, argv, { env }), { flags: want, args: [], missing });
  });
}

test('a bad value is reported with its source', () => {
  const why = 'must be an even number';
  const bad = (argv: string[], env = {}) => parseArgs(settings, argv, { env });
  assert.throws(() => bad(['--port', '3']), { message: `invalid argument "3" for "--port" flag: ${why}` });
  assert.throws(() => bad([], { APP_PORT: '3' }), { message: `invalid argument "3" for variable APP_PORT: ${why}` });
  assert.throws(() => bad(['--mode=c']), { message: 'invalid argument "c" for "--mode" flag: must be one of a, b' });
});

test('a flag can refuse to be used, in its own words', () => {
  const refusing = {
    ...textFlag({ name: 'x', help: '' }, 'string'),
    parse(): never {
      throw new CommandError('--x is not supported: use --y');
    },
  };
  assert.throws(() => parseArgs({ refusing }, ['--x=1']), { message: '--x is not supported: use --y' });
});

test('help can be asked for anywhere before two dashes', () => {
  assert.ok(asksForHelp(['a', '--nope', '-h']));
  assert.ok(asksForHelp(['--help']));
  assert.ok(!asksForHelp(['a', '--', '--help']));
});
