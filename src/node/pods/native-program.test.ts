import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeProgram } from '#node/pods/native-program.ts';
import type { ProgramProcess } from '#node/pods/program.ts';

const node = (script: string) => nativeProgram({ command: [process.execPath, '-e', script], cwd: '/' });

async function endOf(program: ProgramProcess): Promise<{ said: string; code: number }> {
  const chunks: Buffer[] = [];
  program.onOutput((chunk) => chunks.push(chunk));
  const code = await program.exited;
  return { said: Buffer.concat(chunks).toString(), code };
}

test('it gets the args and variables of the pod, and no others', async () => {
  const run = node('console.log(process.argv[1], process.env.SELFSAME_X, process.env.HOME); process.exit(3)');
  assert.deepEqual(await endOf(run(['version'], { SELFSAME_X: '1' })), { said: 'version 1 undefined\n', code: 3 });
});

test('both outputs are heard', async () => {
  assert.deepEqual(await endOf(node('console.error("oh")')([], {})), { said: 'oh\n', code: 0 });
});

test('one that was killed says by what', async () => {
  const program = node('setInterval(() => {}, 1000)')([], {});
  program.kill('SIGKILL');
  assert.equal((await endOf(program)).code, 137);
});

test('one that cannot be started has ended', async () => {
  const { said, code } = await endOf(nativeProgram({ command: ['/nowhere/selfsame'], cwd: '/' })([], {}));
  assert.equal(code, 127);
  assert.match(said, /^Cannot start the program: /);
});
