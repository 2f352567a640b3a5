import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '#node/volumes/local/run-command.ts';
import { endIsolated, isolate } from '#node/volumes/local/run-isolated.ts';
import { isRoot } from '#node/volumes/local/testing/volumes-scene.ts';

function skipReason(): string | false {
  if (!isRoot) return 'requires root';
  try {
    for (const program of ['runc', 'qemu-img']) execFileSync(program, ['--version'], { stdio: 'pipe' });
    return false;
  } catch (error) {
    return `a program is missing: ${(error as Error).message}`;
  }
}

describe('an isolated program', { skip: skipReason() }, () => {
  let dir: string;
  let image: string;
  let target: string;

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'selfsame-isolated-'));
    [image, target] = [join(dir, 'image.qcow2'), join(dir, 'target.raw')];
    await writeFile(join(dir, 'secret'), 'a secret of the host'.padEnd(512));
  });

  after(() => rm(dir, { recursive: true }));

  async function convert(): Promise<string> {
    await writeFile(target, '');
    const files = [
      { path: image, readonly: true },
      { path: target, readonly: false },
    ];
    await isolate(runCommand, dir)('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', image, target], { files });
    return await readFile(target, 'latin1');
  }

  it('converts an image', async () => {
    const raw = join(dir, 'raw');
    await writeFile(raw, 'the data of a guest'.padEnd(512));
    execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, image]);
    assert.match(await convert(), /^the data of a guest/);
  });

  for (const [name, args] of Object.entries({
    'a backing file': ['-b', 'secret', '-F', 'raw'],
    'a data file': ['-o', 'data_file=secret,data_file_raw=on'],
  })) {
    it(`cannot read a file of the host through ${name} of the image`, async () => {
      await rm(image, { force: true });
      execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', ...args, image, '512'], { cwd: dir });
      await writeFile(join(dir, 'secret'), 'a secret of the host'.padEnd(512));
      await assert.rejects(convert(), /^ProgramError: Cannot run qemu-img convert: .*No such file or directory/);
      assert.equal(await readFile(target, 'latin1'), '');
    });
  }

  it('leaves nothing behind, and the next agent ends what a killed one left', async () => {
    assert.deepEqual(await readdir(join(dir, 'isolated')), []);
    const running = isolate(runCommand, dir)('sleep', ['1000'], { files: [] });
    const ended = assert.rejects(running, /Cannot run sleep 1000/);
    const started = async () => (await readdir(join(dir, 'isolated'))).length === 1 && isSleeping();
    while (!(await started())) await new Promise((resolve) => setTimeout(resolve, 10));
    await endIsolated(runCommand, dir);
    await ended;
    assert.ok(!isSleeping());
    await mkdir(join(dir, 'isolated', 'run-half'));
    await endIsolated(runCommand, dir);
    assert.deepEqual(await readdir(join(dir, 'isolated')), []);
  });

  function isSleeping(): boolean {
    return String(execFileSync('ps', ['-eo', 'args'])).includes('\nsleep 1000\n');
  }
});
