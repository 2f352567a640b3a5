/** The program as a user runs it: the launcher, exit codes, and output. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { acquireDataDir } from '#lib/files/data-dir-lock.ts';

const LAUNCHER = join(import.meta.dirname, '../..', 'selfsame');

function aDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'main-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function launch(t: TestContext, args: readonly string[], { launcher = LAUNCHER, cwd = tmpdir() } = {}) {
  const child = spawn(launcher, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

async function outcome(child: ReturnType<typeof launch>) {
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { code: code as number | null, stdout, stderr };
}

/** Resolves with the output up to and including the line `ready`; rejects if the program ends before. */
function ready(child: ReturnType<typeof launch>): Promise<string> {
  return new Promise((resolve, reject) => {
    let [stdout, stderr] = ['', ''];
    child.stderr.on('data', (chunk) => (stderr += String(chunk)));
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk);
      if (/^ready$/m.test(stdout)) resolve(stdout);
    });
    child.once('exit', (code) => reject(new Error(`ended with ${code} before it was ready: ${stdout}${stderr}`)));
  });
}

async function stopAndReadCode(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  const exit = once(child, 'exit');
  child.kill(signal);
  const [code] = (await exit) as [number | null];
  return code;
}

test('version prints the version of the program and of Node', async (t) => {
  const { code, stdout } = await outcome(launch(t, ['version']));
  assert.match(stdout, /^selfsame \d+\.\d+\.\d+ \(node 24\./);
  assert.equal(code, 0);
});

test('the launcher works through symbolic links and from any directory', async (t) => {
  const dir = aDir(t);
  symlinkSync(LAUNCHER, join(dir, 'first'));
  symlinkSync('first', join(dir, 'second'));
  const { code, stdout } = await outcome(launch(t, ['help'], { launcher: join(dir, 'second'), cwd: '/' }));
  assert.match(stdout, /^Use "selfsame <command> --help"/m);
  assert.equal(code, 0);
});

test('a usage error prints one sentence and exits with 2', async (t) => {
  const result = await outcome(launch(t, ['up', '--prot', '1']));
  assert.deepEqual(result, {
    code: 2,
    stdout: '',
    stderr: 'error: unknown flag: --prot; did you mean --port?\nUsage: selfsame up [flags]\nTry: selfsame up --help\n',
  });
});

test('a data directory in use is refused with the pid that holds it', async (t) => {
  const dir = aDir(t);
  const lock = acquireDataDir(dir);
  t.after(() => lock.release());
  assert.deepEqual(await outcome(launch(t, ['up', '--data-dir', dir, '--port', '0'])), {
    code: 1,
    stdout: '',
    stderr: `error: Cannot use data directory "${dir}": it is held by process ${process.pid}; stop it first or choose another --data-dir\n`,
  });
});

test('up prints the kubeconfig and ready, and a signal stops it cleanly', async (t) => {
  const dir = aDir(t);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const child = launch(t, ['up', '--data-dir', dir, '--port', '0', '--log-level', 'silent']);
    const printed = await ready(child);
    assert.ok(printed.includes(`export KUBECONFIG=${join(dir, 'kubeconfig')}`));
    assert.equal(readFileSync(join(dir, 'server.pid'), 'utf8'), `${child.pid}\n`, 'the launcher became the program');
    assert.equal(await stopAndReadCode(child, signal), 0);
  }
});

test('a port in use is reported with what to do', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const args = ['up', '--data-dir', aDir(t), '--port', String(port), '--log-level', 'silent'];
  assert.deepEqual(await outcome(launch(t, args)), {
    code: 1,
    stdout: '',
    stderr: `error: Cannot listen on 127.0.0.1:${port}: the port is in use by another program; choose another with --port\n`,
  });
});

test('an invalid token file is reported in one line without a stack', async (t) => {
  const dir = aDir(t);
  writeFileSync(join(dir, 'tokens.csv'), 'secret,jane\n');
  const args = ['up', '--data-dir', dir, '--port', '0', '--log-level', 'silent'];
  const { code, stderr } = await outcome(launch(t, [...args, '--token-auth-file', join(dir, 'tokens.csv')]));
  assert.match(stderr, /^error: Cannot read the token file: line 1 has 2 of at least 3 columns[^\n]*\n$/);
  assert.equal(code, 1);
});
