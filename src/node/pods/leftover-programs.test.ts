import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { killLeftoverPrograms } from '#node/pods/leftover-programs.ts';
import { nativeProgram } from '#node/pods/native-program.ts';

/** Starts a program that runs until it is killed; resolves when it runs. */
async function aProgram(tokenFile: string) {
  const script = 'console.log("up"); setInterval(() => {}, 1000)';
  const program = nativeProgram({ command: [process.execPath, '-e', script], cwd: '/' })([], {
    SELFSAME_TOKEN_FILE: tokenFile,
  });
  await new Promise<void>((resolve) => program.onOutput(() => resolve()));
  return program;
}

test('kills only the programs with tokens in this directory', async (t) => {
  const base = await mkdtemp(join(tmpdir(), 'left-programs-'));
  t.after(() => rm(base, { recursive: true }));
  const [ours, other] = await Promise.all([
    aProgram(join(base, 'pods/u-1/token')),
    aProgram(join(base, 'pods-of-another/u-1/token')),
  ]);
  t.after(() => other.kill('SIGKILL'));
  // Without the directory, no process is searched.
  await killLeftoverPrograms(join(base, 'pods'));
  await mkdir(join(base, 'pods/u-1'), { recursive: true });
  await killLeftoverPrograms(join(base, 'pods'));
  assert.equal(await ours.exited, 137);
  other.kill('SIGTERM');
  assert.equal(await other.exited, 143);
});
