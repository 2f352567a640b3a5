import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENV_OF_OPTIONS } from '#api/machine-types/options.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { resolveCall } from '#lib/command-line/resolve-call.ts';
import { checkCommands } from '#lib/command-line/testing/check-commands.ts';
import { selfsameTable } from './commands.ts';
import { withoutFlagVariables } from './flag-kinds.ts';
import type { UpOptions } from './flags.ts';

checkCommands(selfsameTable);

/** Returns the name, arguments and flags of a call. */
function parse(argv: readonly string[], env: EnvironmentVariables = {}) {
  const call = resolveCall(selfsameTable, argv, env);
  assert.ok('command' in call, 'it is a command');
  const { help: _, ...flags } = call.flags;
  return { command: call.command.name, args: call.args, flags };
}

function helpOf(argv: readonly string[]): string {
  const call = resolveCall(selfsameTable, argv);
  assert.ok('text' in call, 'it is a text');
  return call.text;
}

const DEFAULTS: UpOptions = {
  dataDir: join(import.meta.dirname, '../..', '.selfsame'),
  host: '127.0.0.1',
  port: 6443,
  tokenAuthFile: undefined,
  nodes: 2,
  hypervisor: 'qemu',
  accel: 'auto',
  logLevel: 'warn',
  audit: 'writes',
  auditLogMaxSize: 64,
  auditLogMaxBackup: 8,
  eventTtl: 3_600_000,
  guestSubnets: 'auto',
  serviceSubnets: ['10.96.0.0/16', 'fd00:10:96::/112'],
  loadBalancer: false,
};

interface UpCase {
  readonly args?: string[];
  readonly env?: Record<string, string>;
  readonly want: Partial<UpOptions>;
}

const upCases: Record<string, UpCase> = {
  'has a default for everything': { want: {} },
  'takes a value as the next argument': { args: ['--data-dir', '/d', '--port', '1'], want: { dataDir: '/d', port: 1 } },
  'takes a value after an equals sign': { args: ['--data-dir=/a=b'], want: { dataDir: '/a=b' } },
  'takes values from the environment': {
    env: {
      SELFSAME_DATA_DIR: '/e',
      SELFSAME_HOST: '::1',
      SELFSAME_PORT: '0',
      SELFSAME_TOKEN_AUTH_FILE: '/t',
      SELFSAME_LOG_LEVEL: 'debug',
    },
    want: { dataDir: '/e', host: '::1', port: 0, tokenAuthFile: '/t', logLevel: 'debug' },
  },
  'prefers the command line to the environment': {
    args: ['--port', '7000'],
    env: { SELFSAME_PORT: '8000' },
    want: { port: 7000 },
  },
  'does not even read a variable that is overridden': {
    args: ['--port', '7000'],
    env: { SELFSAME_PORT: 'nonsense' },
    want: { port: 7000 },
  },
  'accepts the number of nodes, the hypervisor and the accelerator': {
    args: ['--nodes', '0', '--hypervisor', 'fake', '--accel', 'tcg'],
    want: { nodes: 0, hypervisor: 'fake', accel: 'tcg' },
  },
  'accepts audit options': {
    args: ['--audit', 'all-writes', '--audit-log-maxsize', '1', '--audit-log-maxbackup=2'],
    want: { audit: 'all-writes', auditLogMaxSize: 1, auditLogMaxBackup: 2 },
  },
  'accepts the subnets of Services, and load balancers': {
    args: ['--service-subnets', '10.1.0.0/24', '--load-balancer'],
    want: { serviceSubnets: ['10.1.0.0/24'], loadBalancer: true },
  },
  'accepts the lifetime of Events': { args: ['--event-ttl', '1h30m'], want: { eventTtl: 5_400_000 } },
  'accepts the subnets of guests': {
    args: ['--guest-subnets', '10.50.0.0/16, fd00:50::/64'],
    want: { guestSubnets: ['10.50.0.0/16', 'fd00:50::/64'] },
  },
  'takes the last of a repeated flag': { args: ['--port', '1', '--port', '2'], want: { port: 2 } },
};

for (const [name, { args = [], env = {}, want }] of Object.entries(upCases)) {
  test(`up ${name}`, () => {
    assert.deepEqual(parse(['up', ...args], env), { command: 'up', args: [], flags: { ...DEFAULTS, ...want } });
  });
}

const hostCases: Record<string, { args: string[]; node?: string; dataDir?: string; words: string[] }> = {
  'has no node unless one is named': { args: ['list', 'table'], words: ['list', 'table'] },
  'takes its flags before the verb': {
    args: ['--node', 'n1', '--data-dir=/d', 'list', 'vms:a,b'],
    node: 'n1',
    dataDir: '/d',
    words: ['list', 'vms:a,b'],
  },
  'leaves what follows the verb as it is': { args: ['list', '--help', '--node'], words: ['list', '--help', '--node'] },
  'accepts no verb': { args: ['--node', 'n1'], node: 'n1', words: [] },
};

for (const [name, { args, node, dataDir = DEFAULTS.dataDir, words }] of Object.entries(hostCases)) {
  test(`host ${name}`, () => {
    assert.deepEqual(parse(['host', ...args]), { command: 'host', args: words, flags: { node, dataDir } });
  });
}

test('audit reads the data directory from the environment, but no filters', () => {
  const env = { SELFSAME_DATA_DIR: '/d', SELFSAME_USER: 'bob', SELFSAME_NAME: 'x', SELFSAME_OUTPUT: 'text' };
  const { flags } = parse(['audit', '--follow', '--verb', 'create,delete'], env);
  assert.deepEqual(
    { ...flags },
    {
      ...{ dataDir: '/d', follow: true, since: undefined, user: undefined, verb: ['create', 'delete'] },
      ...{ resource: undefined, namespace: undefined, name: undefined, refused: false, output: 'table' },
    },
  );
  assert.equal(parse(['audit', '--data-dir', '/other'], env).flags['dataDir'], '/other');
});

interface UsageCase {
  readonly argv: string[];
  readonly env?: Record<string, string>;
  readonly error: string;
}

const invalid = (value: string, flag: string, mustBe: string) =>
  `invalid argument ${JSON.stringify(value)} for ${flag}: must be ${mustBe}`;
const DURATION = 'a duration from 1s to 8760h, such as 30m or 1h30m';
const PORT = 'a port number from 0 to 65535';

const mistakes: Record<string, UsageCase> = {
  'an unknown command': { argv: ['upp'], error: 'unknown command "upp" for "selfsame"; did you mean "up"?' },
  'a hidden command': { argv: ['update-machine-type'], error: 'unknown command "update-machine-type" for "selfsame"' },
  'an unknown flag': { argv: ['up', '--prot', '1'], error: 'unknown flag: --prot; did you mean --port?' },
  'a flag of another command': { argv: ['version', '--port', '1'], error: 'unknown flag: --port' },
  'a stray argument': { argv: ['up', 'now'], error: 'accepts 0 arg(s), received 1' },
  'an unknown letter': { argv: ['up', '-p'], error: "unknown shorthand flag: 'p' in -p" },
  'a flag without value': { argv: ['up', '--port'], error: 'flag needs an argument: --port' },
  'a port that is not a number': { argv: ['up', '--port', '64x'], error: invalid('64x', '"--port" flag', PORT) },
  'a port too high': { argv: ['up', '--port=65536'], error: invalid('65536', '"--port" flag', PORT) },
  'a lifetime of Events in days': {
    argv: ['up', '--event-ttl', '7d'],
    error: invalid('7d', '"--event-ttl" flag', DURATION),
  },
  'a lifetime of Events too short': {
    argv: ['engine', '--event-ttl', '0'],
    error: invalid('0', '"--event-ttl" flag', DURATION),
  },
  'two subnets of Services of one family': {
    argv: ['up', '--service-subnets', '10.1.0.0/24,10.2.0.0/24'],
    error: invalid(
      '10.1.0.0/24,10.2.0.0/24',
      '"--service-subnets" flag',
      'one IPv4 subnet, one IPv6 subnet, or both, such as 10.96.0.0/16,fd00:10:96::/112',
    ),
  },
  'an empty port': { argv: ['up', '--port='], error: invalid('', '"--port" flag', PORT) },
  'a negative port': { argv: ['up', '--port', '-1'], error: invalid('-1', '"--port" flag', PORT) },
  'a bad value in the environment': {
    argv: ['up'],
    env: { SELFSAME_PORT: 'x' },
    error: invalid('x', 'variable SELFSAME_PORT', PORT),
  },
  'a host name': {
    argv: ['up', '--host', 'example.org'],
    error: invalid('example.org', '"--host" flag', 'an IP address or localhost'),
  },
  'an unknown log level': {
    argv: ['up', '--log-level', 'loud'],
    error: invalid('loud', '"--log-level" flag', 'one of debug, info, warn, error, silent'),
  },
  'more nodes than one machine should have': {
    argv: ['up', '--nodes', '101'],
    error: invalid('101', '"--nodes" flag', 'a number from 0 to 100'),
  },
  'a subnet of guests that is not one': {
    argv: ['up', '--guest-subnets', '10.50.0.1/16'],
    error: invalid(
      '10.50.0.1/16',
      '"--guest-subnets" flag',
      'auto, none or subnets: "10.50.0.1/16" is not a subnet: the network is 10.50.0.0/16; write it like 10.244.0.0/16 or fd00:10:244::/64',
    ),
  },
  'an unknown hypervisor': {
    argv: ['up', '--hypervisor', 'xen'],
    error: invalid('xen', '"--hypervisor" flag', 'one of qemu, fake'),
  },
  'an invalid node name': {
    argv: ['node', '--name', '../etc'],
    error: invalid('../etc', '"--name" flag', 'a lower-case name of at most 63 characters'),
  },
  'an invalid DNS name': {
    argv: ['node', '--kubeconfig', 'k', '--hostname', 'Host_1'],
    error: invalid('Host_1', '"--hostname" flag', 'a DNS name in lower case'),
  },
  'a short lifetime': {
    argv: ['controllers', '--ca-lifetime', '4s'],
    error: invalid('4s', '"--ca-lifetime" flag', 'a time of at least 5s, such as 12h or 90d'),
  },
  'an audit log without a size': {
    argv: ['up', '--audit-log-maxsize', '0'],
    error: invalid('0', '"--audit-log-maxsize" flag', 'a number from 1 to 16384'),
  },
  'an unknown kind of audit': {
    argv: ['engine', '--audit', 'reads'],
    error: invalid('reads', '"--audit" flag', 'one of writes, all-writes, off'),
  },
  'an empty data directory': { argv: ['up', '--data-dir', ''], error: invalid('', '"--data-dir" flag', 'a path') },
  'a backup without a file': { argv: ['backup'], error: 'required flag(s) "to" not set' },
  'help about an unknown command': {
    argv: ['help', 'upp'],
    error: 'unknown command "upp" for "selfsame"; did you mean "up"?',
  },
  'an argument of the command of Jobs': {
    argv: ['update-machine-types', 'x'],
    error: 'accepts 0 arg(s), received 1',
  },
};

for (const [name, { argv, env = {}, error }] of Object.entries(mistakes)) {
  test(`refuses ${name}`, () => {
    assert.throws(() => resolveCall(selfsameTable, argv, env), { name: 'UsageError', message: error });
  });
}

const contradictions: Record<string, UsageCase> = {
  'an address for a node of the embedded engine': {
    argv: ['node', '--node-ip', '10.0.0.1'],
    error: '--node-ip needs --kubeconfig',
  },
  'a dry run without --apply': { argv: ['install', '--dry-run'], error: '--dry-run needs --apply' },
  'the directory of an engine for controllers': {
    argv: ['join', '--as', 'controllers', '--engine-data-dir', '/e'],
    error: '--engine-data-dir requires --as node',
  },
  'an unknown shell': { argv: ['completion', 'csh'], error: 'completion needs one of bash, zsh, fish' },
};
for (const [name, { argv, error }] of Object.entries(contradictions)) {
  test(`refuses ${name}`, async () => {
    await assert.rejects(run(argv), { name: 'UsageError', message: error });
  });
}

/** Runs a command and returns what it prints. */
async function run(argv: readonly string[]): Promise<string> {
  const call = resolveCall(selfsameTable, argv);
  assert.ok('command' in call);
  let text = '';
  const stdout = { write: (more: string) => (text += more) };
  await call.command.run({ env: {}, stdout, args: call.args, flags: call.flags as never });
  return text;
}

test('flag variables are not passed on to nodes', () => {
  const env = { PATH: '/bin', SELFSAME_KUBECONFIG: '/k', SELFSAME_PORT: '1', NODE_COMPILE_CACHE: '/c' };
  assert.deepEqual(withoutFlagVariables(env), { PATH: '/bin', NODE_COMPILE_CACHE: '/c' });
});

for (const argv of [['help'], ['--help'], ['-h']]) {
  test(`${argv.join(' ')} lists every command that is not hidden`, () => {
    const text = helpOf(argv);
    for (const command of ['up', 'engine', 'node', 'audit', 'tour', 'doctor', 'version']) {
      assert.match(text, new RegExp(`^  ${command} `, 'm'));
    }
    assert.doesNotMatch(text, /update-machine-types|tour-plane|__complete/);
  });
}

const completed: Record<string, [words: string[], want: RegExp]> = {
  'commands, but not hidden ones': [[''], /^up\t.*\nengine\t(?!.*(?:__complete|update-machine-types))/s],
  'flags of a command': [['up', '--no'], /^--nodes\tnumber of .*\n:4\n$/],
  'flags of the audit log': [['audit', '--ref'], /^--refused\t/],
  'values of a flag': [['up', '--accel', 't'], /^tcg\n:4\n$/],
  'files and directories': [['up', '--data-dir', '/t'], /^:0\n$/],
  'verbs of a node': [['host', 'hotplug'], /^hotplugDisk\nhotplugNic\n:4\n$/],
  'words that look like help': [['--he'], /^--help\t.*\n:4\n$/],
};
for (const [title, [words, want]] of Object.entries(completed)) {
  test(`completes ${title}`, async () => assert.match(await run(['__complete', ...words]), want));
}

test('the command of Jobs has a help', () => {
  const text = helpOf(['help', 'update-machine-types']);
  for (const name of [...Object.values(ENV_OF_OPTIONS), 'JOB_NAME', 'SELFSAME_LOG_LEVEL', 'SELFSAME_TOKEN_FILE']) {
    assert.match(text, new RegExp(`\\b${name}\\b`));
  }
});

for (const argv of [
  ['help', 'up'],
  ['up', '--help'],
  ['--help', 'up'],
  ['up', '--port', 'x', '-h'],
]) {
  test(`${argv.join(' ')} lists each flag with its variable and default`, () => {
    const text = helpOf(argv);
    for (const part of [
      '--port PORT',
      '(default 6443; also SELFSAME_PORT)',
      'SELFSAME_DATA_DIR',
      '--token-auth-file',
    ]) {
      assert.ok(text.includes(part), part);
    }
  });
}

test('version prints the version', async () => {
  assert.match(await run(['version']), /^selfsame \d+\.\d+\.\d+ \(node \d+\..*\)\n$/);
});
