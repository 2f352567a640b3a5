import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import {
  isRunning,
  DetachedProcess,
  parseStat,
  findProcessesBelow,
  spawnDetached,
} from '#node/hypervisor/qemu/process/process.ts';

const LONG_MS = 20_000;

async function withProcess(
  command: string[],
  run: (process: DetachedProcess, log: () => Promise<string>, cwd: string) => Promise<void>,
) {
  const cwd = await mkdtemp(join(tmpdir(), 'selfsame-process-'));
  const file = await open(join(cwd, 'log'), 'a');
  const [program = '', ...args] = command;
  const options = { command: program, args, cwd, user: undefined, logFd: file.fd };
  const child = await spawnDetached(options, systemClock);
  await file.close();
  try {
    await run(child, () => readFile(join(cwd, 'log'), 'utf8'), cwd);
  } finally {
    await child.kill('SIGKILL');
    await child.waitForExit(LONG_MS);
    await rm(cwd, { recursive: true, force: true });
  }
}

test('identifies a process by pid, start time and boot', () =>
  withProcess(['sleep', '60'], async (child) => {
    const { identity } = child;
    assert.equal(await isRunning(identity), true);
    assert.equal(await isRunning({ ...identity, startTicks: '1' }), false);
    assert.equal(await isRunning({ ...identity, bootId: 'another boot' }), false);
    assert.notEqual(identity.startTicks, '');
  }));

test('does not kill another process with a reused pid', () =>
  withProcess(['sleep', '60'], async (child) => {
    const mistaken = new DetachedProcess({ ...child.identity, startTicks: '1' }, systemClock);
    await mistaken.kill('SIGKILL');
    assert.equal(await child.isAlive(), true);
  }));

test('notices the exit of a process that another process started', () =>
  withProcess(['sleep', '60'], async (child) => {
    const other = new DetachedProcess(child.identity, systemClock);
    assert.equal(await other.isAlive(), true);
    assert.equal(await other.waitForExit(0), false);
    await other.kill('SIGKILL');
    assert.equal(await other.waitForExit(LONG_MS), true);
    assert.equal(await child.waitForExit(LONG_MS), true);
    assert.equal(child.exitText(), 'was killed by SIGKILL');
    assert.equal(other.exitText(), undefined);
    await other.kill('SIGKILL');
  }));

test('writes output to the log, and knows the exit code', () =>
  withProcess(['sh', '-c', 'echo out; echo err >&2; exit 3'], async (child, log) => {
    assert.equal(await child.waitForExit(LONG_MS), true);
    assert.equal(child.exitText(), 'exited with code 3');
    assert.equal(await log(), 'out\nerr\n');
  }));

test('starts a process with a clean environment in its own session', () =>
  withProcess(['sh', '-c', 'env; cut -d" " -f6 /proc/self/stat; echo $$; exit 0'], async (child, log) => {
    await child.waitForExit(LONG_MS);
    const lines = (await log()).trim().split('\n');
    assert.deepEqual(
      lines.filter((line) => /^[A-Z_]+=/.test(line) && !/^(?:PATH|LC_ALL|PWD|OLDPWD|SHLVL|_)=/.test(line)),
      [],
    );
    assert.equal(lines.at(-2), lines.at(-1));
  }));

test('fails for a missing program', async () => {
  const options = { command: 'no-such-program', args: [], cwd: '/', user: undefined, logFd: 2 };
  await assert.rejects(spawnDetached(options, systemClock), /ENOENT/);
});

test('finds a process by its working directory, even if that was removed', () =>
  withProcess(['sleep', '60', '0.0419'], async (child, _log, cwd) => {
    const [root, words] = [await realpath(tmpdir()), ['sleep', '60', '0.0419', '']];
    const found = async () =>
      (await findProcessesBelow(root)).filter(({ identity }) => identity.pid === child.identity.pid);
    const want = [{ identity: child.identity, cwd: await realpath(cwd), words }];
    assert.deepEqual(await found(), want);
    assert.deepEqual(await findProcessesBelow(join(cwd, 'deeper')), []);
    await rm(cwd, { recursive: true });
    assert.deepEqual(await found(), want);
  }));

test('parses a stat whose program name looks like fields', () => {
  const rest = `R ${Array.from({ length: 40 }, (_, i) => i + 4).join(' ')}`;
  assert.deepEqual(parseStat(`7 (a) Z 1 2 (b)) ${rest}`), { state: 'R', startTicks: '22' });
  assert.equal(parseStat(''), undefined);
});
