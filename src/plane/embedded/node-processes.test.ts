import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { acquireDataDir } from '#lib/files/data-dir-lock.ts';
import { silentLog } from '#lib/log.ts';
import { NodeProcesses } from '#plane/embedded/node-processes.ts';

const LOCK = join(import.meta.dirname, '../../lib/files/data-dir-lock.ts');

/** Returns a program that locks the directory like an agent and records its pid. With `ends` it ends at once. */
function agent(dir: string, { ends = false } = {}): string[] {
  const code = `
    import { appendFileSync } from 'node:fs';
    import { acquireDataDir } from '${LOCK}';
    const lock = acquireDataDir('${dir}');
    process.chdir('${dir}');
    appendFileSync('${join(dir, 'env')}', Object.keys(process.env).join() + '\\n');
    appendFileSync('${join(dir, 'pids')}', process.pid + '\\n');
    process.on('SIGTERM', () => { lock.release(); process.exit(0); });
    ${ends ? 'lock.release(); process.exit(3);' : 'setInterval(() => {}, 1000);'}`;
  return ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', code];
}

function scene(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-nodes-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const pids = () => (existsSync(join(dir, 'pids')) ? readFileSync(join(dir, 'pids'), 'utf8').trim().split('\n') : []);
  const start = ({ ends = false, file = process.execPath, dataDir = dir, env = {} } = {}) => {
    const node = { name: 'node-1', dataDir, file, args: agent(dir, { ends }), env };
    return new NodeProcesses({ nodes: [node], clock: systemClock, log: silentLog });
  };
  return { dir, pids, start };
}

/** Waits with a limit, so that a failing test does not block the others. */
async function until(ready: () => boolean): Promise<void> {
  const end = performance.now() + 30_000;
  while (!ready() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(ready(), 'the condition holds in time');
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('a node has only the given environment', async (t) => {
  const { dir, pids, start } = scene(t);
  const processes = start({ env: { ONLY: 'this' } });
  await until(() => pids().length === 1);
  await processes.stop();
  assert.doesNotMatch(readFileSync(join(dir, 'env'), 'utf8'), /HOME|PATH/);
  assert.match(readFileSync(join(dir, 'env'), 'utf8'), /ONLY/);
});

test('a node runs until it is stopped', async (t) => {
  const { pids, start } = scene(t);
  const processes = start();
  await until(() => pids().length === 1);
  await processes.stop();
  assert.equal(isAlive(Number(pids()[0])), false);
});

test('a node that ends is started again', async (t) => {
  const { pids, start } = scene(t);
  const processes = start({ ends: true });
  await until(() => pids().length >= 2);
  await processes.stop();
  assert.equal(new Set(pids()).size, pids().length, 'each run is a new process');
});

test('an agent of an earlier server is stopped first', async (t) => {
  const { dir, pids, start } = scene(t);
  const earlier = spawn(process.execPath, agent(dir), { stdio: 'ignore' });
  const left = once(earlier, 'exit');
  await until(() => pids().length === 1);
  const processes = start();
  await left;
  await until(() => pids().length === 2);
  await processes.stop();
});

test('a program that cannot be started does not end the server', async (t) => {
  const { dir, start } = scene(t);
  const processes = start({ file: join(dir, 'no-such-program') });
  assert.deepEqual(await processes.ready(100), ['node-1']);
  await processes.stop();
});

test('a directory that cannot be used does not end the server', async (t) => {
  const { start } = scene(t);
  const processes = start({ dataDir: '/proc/no/such/directory' });
  assert.deepEqual(await processes.ready(100), ['node-1']);
  await processes.stop();
});

test('a process that only has the pid of an earlier agent is not stopped', async (t) => {
  const { dir, start } = scene(t);
  const lock = acquireDataDir(dir);
  const unrelated = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', cwd: '/' });
  await once(unrelated, 'spawn');
  writeFileSync(join(dir, 'server.pid'), `${unrelated.pid}\n`);
  const processes = start();
  await processes.ready(200);
  await processes.stop();
  assert.equal(unrelated.exitCode ?? unrelated.signalCode, null);
  unrelated.kill();
  await once(unrelated, 'exit');
  lock.release();
});
