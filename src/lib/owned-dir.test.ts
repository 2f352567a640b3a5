import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { abandonedDirs, isAlive, makeOwnedDir, ownerOf, removeWithProcesses } from './owned-dir.ts';

const PREFIX = 'walk-';

const names: Record<string, [name: string, want: number | undefined]> = {
  'one of ours': ['walk-4711-aB3xY9', 4711],
  'another prefix': ['talk-4711-aB3xY9', undefined],
  'no process': ['walk-aB3xY9', undefined],
  'something behind it': ['walk-4711-aB3xY9.old', undefined],
  'a number that no process has': ['walk-47114711471-aB3xY9', undefined],
};
for (const [title, [name, want]] of Object.entries(names)) {
  test(`the owner of ${title}`, () => assert.equal(ownerOf(name, PREFIX), want));
}

function aParent(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'owned-dir-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The pid of a process that was, and is no more. */
async function aDeadPid(): Promise<number> {
  const child = spawn('true');
  await once(child, 'close');
  return child.pid!;
}

test('only directories of processes that are gone were left behind', async (t) => {
  const parent = aParent(t);
  const own = await makeOwnedDir(parent, PREFIX);
  assert.equal(ownerOf(basename(own), PREFIX), process.pid);
  const dead = await aDeadPid();
  const left = join(parent, `${PREFIX}${dead}-aB3xY9`);
  mkdirSync(left);
  writeFileSync(join(parent, `${PREFIX}${dead}-aFileX`), '');
  symlinkSync('/', join(parent, `${PREFIX}${dead}-aLinkX`));
  assert.deepEqual(await abandonedDirs(parent, PREFIX), [left]);
  assert.deepEqual(await abandonedDirs(join(parent, 'nowhere'), PREFIX), []);
});

test('a directory goes with the processes in it, and with no others', async (t) => {
  const parent = aParent(t);
  const dir = join(parent, 'inner');
  mkdirSync(join(dir, 'deep'), { recursive: true });
  mkdirSync(join(parent, 'inner-not'));
  const processIn = (cwd: string) => {
    const child = spawn('sleep', ['300'], { cwd });
    t.after(() => child.kill('SIGKILL'));
    return once(child, 'spawn').then(() => child);
  };
  const [inside, beside] = await Promise.all([processIn(join(dir, 'deep')), processIn(join(parent, 'inner-not'))]);
  const ended = once(inside, 'close');
  await removeWithProcesses(dir);
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  assert.ok(!existsSync(dir));
  assert.ok(isAlive(beside.pid!));
  await removeWithProcesses(dir);
});
