import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { findAbandonedDirs, isAlive, makeOwnedDir, ownerOf, removeWithProcesses } from './owned-dir.ts';

const PREFIX = 'walk-';

const names: Record<string, [name: string, want: number | undefined]> = {
  'is the pid in the name': ['walk-4711-aB3xY9', 4711],
  'is undefined for another prefix': ['talk-4711-aB3xY9', undefined],
  'is undefined without a pid': ['walk-aB3xY9', undefined],
  'is undefined if another suffix follows': ['walk-4711-aB3xY9.old', undefined],
  'is undefined if the number is too long for a pid': ['walk-47114711471-aB3xY9', undefined],
};
for (const [title, [name, want]] of Object.entries(names)) {
  test(`the owner ${title}`, () => assert.equal(ownerOf(name, PREFIX), want));
}

function aParent(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'owned-dir-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Returns the pid of a process that has ended. */
async function aDeadPid(): Promise<number> {
  const child = spawn('true');
  await once(child, 'close');
  return child.pid!;
}

test('finds the directories whose owner no longer runs, but no files and links', async (t) => {
  const parent = aParent(t);
  const own = await makeOwnedDir(parent, PREFIX);
  assert.equal(ownerOf(basename(own), PREFIX), process.pid);
  const dead = await aDeadPid();
  const left = join(parent, `${PREFIX}${dead}-aB3xY9`);
  mkdirSync(left);
  writeFileSync(join(parent, `${PREFIX}${dead}-aFileX`), '');
  symlinkSync('/', join(parent, `${PREFIX}${dead}-aLinkX`));
  assert.deepEqual(await findAbandonedDirs(parent, PREFIX), [left]);
  assert.deepEqual(await findAbandonedDirs(join(parent, 'nowhere'), PREFIX), []);
});

test('removes a directory with the processes in it, and no other processes', async (t) => {
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
