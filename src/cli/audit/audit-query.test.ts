import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditLine } from '#cli/audit/audit-line.ts';
import { AUDIT_FLAGS, parseAuditQuery } from '#cli/audit/audit-query.ts';
import { parseArgs } from '#lib/command-line/parse-args.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const MINUTE_MS = 60_000;

const LINE: AuditLine = {
  receivedMs: NOW - 5 * MINUTE_MS,
  user: 'alice',
  impersonatedUser: '',
  sourceIp: '192.0.2.7',
  verb: 'delete',
  group: 'kubevirt.io',
  resource: 'virtualmachines',
  subresource: '',
  namespace: 'a',
  name: 'db',
  path: '/apis/kubevirt.io/v1/namespaces/a/virtualmachines/db',
  code: 200,
  note: '',
};

const parseQuery = (words: readonly string[]) => parseAuditQuery(parseArgs(AUDIT_FLAGS, words).flags, NOW);

const matches: Record<string, { words: string[]; line?: Partial<AuditLine>; want: boolean }> = {
  'everything without flags': { words: [], want: true },
  'a user': { words: ['--user', 'alice'], want: true },
  'no other user': { words: ['--user=bob'], want: false },
  'one of several users': { words: ['--user', 'bob,alice'], want: true },
  'the impersonated user': { words: ['--user', 'bob'], line: { impersonatedUser: 'bob' }, want: true },
  'a verb': { words: ['--verb', 'create,delete'], want: true },
  'a resource': { words: ['--resource', 'virtualmachines'], want: true },
  'a resource with its group': { words: ['--resource', 'virtualmachines.kubevirt.io'], want: true },
  'no resource of another group': { words: ['--resource', 'virtualmachines.example.com'], want: false },
  'all subresources of a resource': {
    words: ['--resource', 'virtualmachines'],
    line: { subresource: 's' },
    want: true,
  },
  'one subresource': { words: ['--resource', 'virtualmachines/s'], line: { subresource: 's' }, want: true },
  'one subresource of a group': {
    words: ['--resource', 'virtualmachines.kubevirt.io/s'],
    line: { subresource: 's' },
    want: true,
  },
  'no object if a subresource is requested': { words: ['--resource', 'virtualmachines/s'], want: false },
  'a namespace': { words: ['-n', 'a'], want: true },
  'no other namespace': { words: ['-nb'], want: false },
  'cluster-scoped objects with an empty namespace': { words: ['--namespace='], line: { namespace: '' }, want: true },
  'no object of a namespace with an empty one': { words: ['--namespace='], want: false },
  'a name': { words: ['--name', 'db'], want: true },
  'no other name': { words: ['--name', 'd'], want: false },
  'refused requests with --refused': { words: ['--refused'], line: { code: 403 }, want: true },
  'no successful requests with --refused': { words: ['--refused'], want: false },
  'recent events with --since': { words: ['--since', '5m'], want: true },
  'no older events with --since': { words: ['--since', '299s'], want: false },
  'events after a time': { words: ['--since', '2026-01-31T11:55:00Z'], want: true },
  'events after a time in another time zone': { words: ['--since', '2026-01-31T12:54:00+01:00'], want: true },
  'events after a date': { words: ['--since', '2026-02-01'], want: false },
  'only events that match all flags': { words: ['--user', 'alice', '--verb', 'create'], want: false },
};

for (const [name, { words, line = {}, want }] of Object.entries(matches)) {
  test(`shows ${name}`, () => assert.equal(parseQuery(words).matches({ ...LINE, ...line }), want));
}

test('defaults to a table without following', () => {
  const { follow, output } = parseArgs(AUDIT_FLAGS, []).flags;
  assert.deepEqual({ follow, output }, { follow: false, output: 'table' });
  assert.equal(parseQuery([]).sinceMs, undefined);
});

test('adds the values of repeated flags', () => {
  assert.ok(parseQuery(['--user', 'bob', '--user', 'alice']).matches(LINE));
});

test('accepts short flags, and returns the earliest time', () => {
  const words = ['-f', '-ojson', '--since=2h'];
  const { follow, output } = parseArgs(AUDIT_FLAGS, words).flags;
  assert.deepEqual({ follow, output }, { follow: true, output: 'json' });
  assert.equal(parseQuery(words).sinceMs, NOW - 120 * MINUTE_MS);
});

const mistakes: Record<string, { words: string[]; want: RegExp }> = {
  'an unknown flag': { words: ['--users', 'x'], want: /^unknown flag: --users; did you mean --user\?$/ },
  'an unknown format': {
    words: ['-o', 'yaml'],
    want: /^invalid argument "yaml" for "-o, --output" flag: must be one of/,
  },
  'a span without a unit': { words: ['--since', '10'], want: /^--since must be like .* not "10"$/ },
  'an invalid time': { words: ['--since', '2026-13-45'], want: /^--since must be like/ },
};

for (const [name, { words, want }] of Object.entries(mistakes)) {
  test(`refuses ${name}`, () => assert.throws(() => parseQuery(words), { message: want }));
}
