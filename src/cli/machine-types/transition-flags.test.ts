import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { parseArgs } from '#lib/command-line/parse-args.ts';
import { textFlag } from '#lib/command-line/flag.ts';
import { findIdleFlags, selectionFlags, transitionOptions } from '#cli/machine-types/transition-flags.ts';

const table = { ...selectionFlags, namespace: textFlag({ name: 'namespace', help: '' }, 'string') };

function parseTransition(...argv: string[]): TransitionOptions {
  const { args, flags } = parseArgs(table, argv);
  return transitionOptions({ args, flags, namespace: flags.namespace });
}

const plain = { glob: '*rhel8.*', restartNow: false, maxRestarts: 10, maxFailures: Infinity };
const understood: Record<string, { argv: string[]; want: TransitionOptions }> = {
  'a glob as the argument': { argv: ['*rhel8.*'], want: plain },
  'a glob as a flag': { argv: ['--which-matches-glob', '*rhel8.*'], want: plain },
  'the same glob twice': { argv: ['*rhel8.*', '--which-matches-glob=*rhel8.*'], want: plain },
  'one namespace': { argv: ['*rhel8.*', '--namespace', 'shop'], want: { ...plain, namespace: 'shop' } },
  'a selector of sets': {
    argv: ['*rhel8.*', '--label-selector', 'tier in (db,web)'],
    want: { ...plain, labelSelector: 'tier in (db,web)' },
  },
  'a selector of an empty value': {
    argv: ['*rhel8.*', '--label-selector=k='],
    want: { ...plain, labelSelector: 'k=' },
  },
  restarts: { argv: ['*rhel8.*', '--restart-now'], want: { ...plain, restartNow: true } },
  '--restart-required as another name of --restart-now': {
    argv: ['*rhel8.*', '--restart-required'],
    want: { ...plain, restartNow: true },
  },
  '--restart-now=false': { argv: ['*rhel8.*', '--restart-now=false'], want: plain },
  'one VM': { argv: ['*rhel8.*', '--name', 'db'], want: { ...plain, name: 'db' } },
  'only running VMs': { argv: ['*rhel8.*', '--running'], want: { ...plain, state: 'running' } },
  'only stopped VMs': { argv: ['*rhel8.*', '--stopped'], want: { ...plain, state: 'stopped' } },
  'a target': {
    argv: ['*rhel8.*', '--target-machine-type', 'pc-q35-7.2'],
    want: { ...plain, target: 'pc-q35-7.2' },
  },
  limits: {
    argv: ['*rhel8.*', '--max-restarts', '3', '--max-failures=0'],
    want: { ...plain, maxRestarts: 3, maxFailures: 0 },
  },
};
for (const [title, { argv, want }] of Object.entries(understood)) {
  test(`understands ${title}`, () => assert.deepEqual(parseTransition(...argv), want));
}

const refused: Record<string, { argv: string[]; message: RegExp }> = {
  'no glob': { argv: [], message: /^--which-matches-glob: no machine type was specified; expected a glob / },
  'two globs': { argv: ['a', '--which-matches-glob', 'b'], message: /^two globs are given, "a" and / },
  'a malformed glob': {
    argv: ['[--'],
    message: /^--which-matches-glob: "\[--": syntax error in pattern; expected a glob /,
  },
  'a malformed namespace': { argv: ['x', '--namespace', 'bad namespace'], message: /^--namespace: "bad namespace" / },
  'several globs, as a shell expands one': {
    argv: ['a', 'b', 'c'],
    message: /^3 globs are given; expected one, in quotes/,
  },
  'a word that looks like an unknown subcommand': {
    argv: ['ls'],
    message: /^unknown command "ls" for .*; expected delete, list or /,
  },
  'an empty namespace': { argv: ['x', '--namespace='], message: /^--namespace: it is empty; omit it / },
  'a malformed selector': {
    argv: ['x', '--label-selector', 'a in ('],
    message: /^--label-selector: unable to parse.*; expected labels such as /,
  },
  'a malformed name': { argv: ['x', '--name', 'No!'], message: /^--name: "No!" / },
  'a malformed target': { argv: ['x', '--target-machine-type', 'a b'], message: /^--target-machine-type: "a b" / },
  'an invalid boolean': {
    argv: ['x', '--restart-now=not_a_boolean'],
    message: /^invalid argument "not_a_boolean" for "--restart-now" flag/,
  },
  'running and stopped': { argv: ['x', '--running', '--stopped'], message: /cannot be combined/ },
  'a maximum of 0 restarts': { argv: ['x', '--max-restarts', '0'], message: /^--max-restarts: must be between 1 / },
  'a negative maximum of failures': {
    argv: ['x', '--max-failures=-1'],
    message: /^--max-failures: must be between 0 and 999999999$/,
  },
  'all errors at once': { argv: ['[', '--name', 'No!'], message: /^--which-matches-glob: .*\n--name: / },
};
for (const [title, { argv, message }] of Object.entries(refused)) {
  test(`refuses ${title}`, () => assert.throws(() => parseTransition(...argv), { message }));
}

const idle: Record<string, { argv: string[]; want: number }> = {
  '--max-restarts without --restart-now': { argv: ['x', '--max-restarts', '3'], want: 1 },
  'none with --restart-now': { argv: ['x', '--max-restarts', '3', '--restart-now'], want: 0 },
  'none by default': { argv: ['x'], want: 0 },
};
for (const [title, { argv, want }] of Object.entries(idle)) {
  test(`flags without effect: ${title}`, () => assert.equal(findIdleFlags(parseArgs(table, argv).flags).length, want));
}
