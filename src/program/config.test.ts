import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseCommandLine, programCommands } from './config.ts';
import type { UpOptions } from './config.ts';
import { withoutFlags } from './parse-flags.ts';
import { ENV_OF_OPTIONS } from '#api/machine-types/options.ts';
import { parseAuditQuery } from '#cli/audit/audit-query.ts';
import { EXAMPLES } from './help.ts';
import { shellWords } from '#cli/testing/shell-words.ts';

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
  'takes the last of a repeated flag': { args: ['--port', '1', '--port', '2'], want: { port: 2 } },
};

for (const [name, { args = [], env = {}, want }] of Object.entries(upCases)) {
  test(`up ${name}`, () => {
    assert.deepEqual(parseCommandLine(['up', ...args], env), { command: 'up', options: { ...DEFAULTS, ...want } });
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
    assert.deepEqual(parseCommandLine(['host', ...args], {}), { command: 'host', options: { node, dataDir, words } });
  });
}

test('audit passes all flags on, and reads the data directory from the environment', () => {
  const words = ['--follow', '--user', 'alice', '--data-dir', '/other'];
  const want = { command: 'audit', options: { dataDir: '/d', words } };
  assert.deepEqual(parseCommandLine(['audit', ...words], { SELFSAME_DATA_DIR: '/d' }), want);
});

test('the help of audit lists its flags', () => {
  for (const argv of [
    ['help', 'audit'],
    ['audit', '--help'],
    ['audit', '--follow', '--user', 'a', '-h'],
  ]) {
    const help = parseCommandLine(argv, {});
    assert.ok('command' in help && help.command === 'help', argv.join(' '));
    assert.match(help.text, /^ {2}-f, --follow /m);
    assert.match(help.text, /^Usage: selfsame audit \[flags\]$/m);
  }
});

interface UsageCase {
  readonly argv: string[];
  readonly env?: Record<string, string>;
  readonly error: string;
}

const mistakes: Record<string, UsageCase> = {
  'no command': { argv: [], error: 'no command given' },
  'an unknown command': { argv: ['upp'], error: 'unknown command "upp"; did you mean "up"?' },
  'a property of Object.prototype': { argv: ['constructor'], error: 'unknown command "constructor"' },
  'an unknown flag': { argv: ['up', '--prot', '1'], error: 'unknown flag --prot; did you mean --port?' },
  'a command without a similar one': { argv: ['explode'], error: 'unknown command "explode"' },
  'a hidden command': { argv: ['update-machine-type'], error: 'unknown command "update-machine-type"' },
  'a flag of another command': { argv: ['version', '--port', '1'], error: 'unknown flag --port' },
  'a stray argument': { argv: ['up', 'now'], error: 'unexpected argument "now"' },
  'a lone dash': { argv: ['up', '-p'], error: 'unexpected argument "-p"' },
  'a flag without value': { argv: ['up', '--port'], error: '--port needs a value' },
  'a port that is not a number': {
    argv: ['up', '--port', '64x'],
    error: '--port must be a port number from 0 to 65535, not "64x"',
  },
  'a port too high': {
    argv: ['up', '--port=65536'],
    error: '--port must be a port number from 0 to 65535, not "65536"',
  },
  'an empty port': { argv: ['up', '--port='], error: '--port must be a port number from 0 to 65535, not ""' },
  'a negative port': { argv: ['up', '--port', '-1'], error: '--port must be a port number from 0 to 65535, not "-1"' },
  'a bad value in the environment': {
    argv: ['up'],
    env: { SELFSAME_PORT: 'x' },
    error: 'SELFSAME_PORT must be a port number from 0 to 65535, not "x"',
  },
  'a host name': {
    argv: ['up', '--host', 'example.org'],
    error: '--host must be an IP address or localhost, not "example.org"',
  },
  'an unknown log level': {
    argv: ['up', '--log-level', 'loud'],
    error: '--log-level must be one of debug, info, warn, error, silent, not "loud"',
  },
  'more nodes than one machine should have': {
    argv: ['up', '--nodes', '101'],
    error: '--nodes must be a number from 0 to 100, not "101"',
  },
  'an unknown hypervisor': {
    argv: ['up', '--hypervisor', 'xen'],
    error: '--hypervisor must be one of qemu, fake, not "xen"',
  },
  'an invalid node name': {
    argv: ['node', '--name', '../etc'],
    error: '--name must be a lower-case name of at most 63 characters, not "../etc"',
  },
  'an address for a node of the embedded engine': {
    argv: ['node', '--node-ip', '10.0.0.1'],
    error: '--node-ip needs --kubeconfig',
  },
  'an invalid DNS name': {
    argv: ['node', '--kubeconfig', 'k', '--hostname', 'Host_1'],
    error: '--hostname must be a DNS name in lower case, not "Host_1"',
  },
  'a dry run without --apply': { argv: ['install', '--dry-run'], error: '--dry-run needs --apply' },
  'the directory of an engine for controllers': {
    argv: ['join', '--as', 'controllers', '--engine-data-dir', '/e'],
    error: '--engine-data-dir requires --as node',
  },
  'an audit log without a size': {
    argv: ['up', '--audit-log-maxsize', '0'],
    error: '--audit-log-maxsize must be a number from 1 to 16384, not "0"',
  },
  'an unknown kind of audit': {
    argv: ['engine', '--audit', 'reads'],
    error: '--audit must be one of writes, all-writes, off, not "reads"',
  },
  'an empty data directory': { argv: ['up', '--data-dir', ''], error: '--data-dir must be a path, not ""' },
  'help about an unknown command': { argv: ['help', 'upp'], error: 'unknown command "upp"; did you mean "up"?' },
};

for (const [name, { argv, env = {}, error }] of Object.entries(mistakes)) {
  test(`refuses ${name}`, () => assert.deepEqual(parseCommandLine(argv, env), { usageError: error }));
}

test('flag variables are not passed on to nodes', () => {
  const env = { PATH: '/bin', SELFSAME_KUBECONFIG: '/k', SELFSAME_PORT: '1', NODE_COMPILE_CACHE: '/c' };
  assert.deepEqual(withoutFlags(env), { PATH: '/bin', NODE_COMPILE_CACHE: '/c' });
});

const helps: Record<string, string[]> = {
  'help is a command': ['help'],
  'help is a flag': ['--help'],
  'help has a short flag': ['-h'],
};

for (const [name, argv] of Object.entries(helps)) {
  test(`${name} and lists every command`, () => {
    const config = parseCommandLine(argv, {});
    assert.ok('command' in config && config.command === 'help');
    for (const command of ['up', 'engine', 'node', 'audit', 'tour', 'doctor', 'version', 'help'])
      assert.match(config.text, new RegExp(`^  ${command} `, 'm'));
  });
}

for (const [name, { summary, hidden }] of Object.entries(programCommands)) {
  if (hidden === true) continue;
  test(`the help of ${name} is well-formed, and its examples parse`, () => {
    const help = parseCommandLine(['help', name], {});
    assert.ok('command' in help && help.command === 'help');
    assert.match(summary, /^[a-z].*[^.]$/);
    assert.match(help.text, new RegExp(`^selfsame ${name}: .*\n\nUsage: selfsame ${name}\\b`));
    assert.match(help.text, /\nExamples:\n {2}# \S/);
    assert.ok(help.text.split('\n').every((line) => line === line.trimEnd()));
    const lines = (EXAMPLES.get(name) ?? '').split('\n').map(shellWords);
    const calls = lines.flatMap((words) => (words[0] === '#' ? [] : [words.slice(words.indexOf('selfsame') + 1)]));
    const own = calls.filter(([word]) => word === name);
    assert.ok(own.length > 0, 'an example calls the command itself');
    for (const [word = '', ...args] of own) {
      const pipe = args.indexOf('|');
      const config = parseCommandLine([word, ...args.slice(0, pipe < 0 ? undefined : pipe)], {});
      assert.ok('command' in config, JSON.stringify(config));
      if (config.command === 'audit') parseAuditQuery(config.options.words, 0);
    }
  });
}

const completed: Record<string, [words: string[], want: RegExp]> = {
  'commands, but not hidden ones': [[''], /^up\t.*\nengine\t(?!.*(?:__complete|update-machine-types))/s],
  'flags of a command': [['up', '--no'], /^--nodes\tnumber of .*\n:4\n$/],
  'flags of the audit log': [['audit', '--ref'], /^--refused\t/],
  'values of a flag': [['up', '--accel', 't'], /^tcg\n:4\n$/],
  'files and directories': [['up', '--data-dir', '/t'], /^:0\n$/],
  'verbs of a node': [['host', 'hotplug'], /^hotplugDisk\nhotplugNic\n:4\n$/],
  'words that look like help': [['--he'], /^:4\n$/],
};
for (const [title, [words, want]] of Object.entries(completed)) {
  test(`completes ${title}`, () => {
    const config = parseCommandLine(['__complete', ...words], {});
    assert.ok('command' in config && config.command === 'help');
    assert.match(config.text, want);
  });
}

test('the command of Jobs is hidden, but has a help', () => {
  const overview = parseCommandLine(['help'], {});
  assert.ok('command' in overview && overview.command === 'help');
  assert.doesNotMatch(overview.text, /update-machine-types/);
  const help = parseCommandLine(['help', 'update-machine-types'], {});
  assert.ok('command' in help && help.command === 'help');
  for (const name of [...Object.values(ENV_OF_OPTIONS), 'JOB_NAME', 'SELFSAME_LOG_LEVEL', 'SELFSAME_TOKEN_FILE']) {
    assert.match(help.text, new RegExp(`\\b${name}\\b`));
  }
});

test('the command of Jobs is configured by the environment only', () => {
  const env = { JOB_GLOB: '*', SELFSAME_LOG_LEVEL: 'debug' };
  const options = { logLevel: 'debug', env };
  assert.deepEqual(parseCommandLine(['update-machine-types'], env), { command: 'update-machine-types', options });
  const misused = parseCommandLine(['update-machine-types', 'x'], {});
  assert.deepEqual(misused, { usageError: 'unexpected argument "x"' });
});

for (const argv of [
  ['help', 'up'],
  ['up', '--help'],
  ['--help', 'up'],
  ['up', '--port', 'x', '-h'],
]) {
  test(`${argv.join(' ')} lists each flag with its variable and default`, () => {
    const config = parseCommandLine(argv, {});
    assert.ok('command' in config && config.command === 'help');
    for (const text of ['--port PORT', 'default 6443; also SELFSAME_PORT', 'SELFSAME_DATA_DIR', '--token-auth-file']) {
      assert.ok(config.text.includes(text), text);
    }
  });
}

for (const argv of [['version'], ['--version']]) {
  test(`${argv.join(' ')} requests the version`, () => {
    assert.deepEqual(parseCommandLine(argv, {}), { command: 'version' });
  });
}
