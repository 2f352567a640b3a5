import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeProgram } from '#node/pods/native-program.ts';
import type { ProgramProcess } from '#node/pods/program.ts';

const node = (script: string) => nativeProgram({ command: [process.execPath, '-e', script], cwd: '/' });

async function outputAndCode(program: ProgramProcess): Promise<{ output: string; code: number }> {
  const chunks: Buffer[] = [];
  program.onOutput((chunk) => chunks.push(chunk));
  const code = await program.exited;
  return { output: Buffer.concat(chunks).toString(), code };
}

test('a program gets only the args and variables of the pod', async () => {
  const run = node('console.log(process.argv[1], process.env.SELFSAME_X, process.env.HOME); process.exit(3)');
  assert.deepEqual(await outputAndCode(run(['version'], { SELFSAME_X: '1' })), {
    output: 'version 1 undefined\n',
    code: 3,
  });
});

test('stderr is part of the output', async () => {
  assert.deepEqual(await outputAndCode(node('console.error("oh")')([], {})), { output: 'oh\n', code: 0 });
});

test('the exit code of a killed program contains the signal', async () => {
  const program = node('setInterval(() => {}, 1000)')([], {});
  program.kill('SIGKILL');
  assert.equal((await outputAndCode(program)).code, 137);
});

test('a program that cannot be started exits with 127', async () => {
  const { output, code } = await outputAndCode(nativeProgram({ command: ['/nowhere/selfsame'], cwd: '/' })([], {}));
  assert.equal(code, 127);
  assert.match(output, /^Cannot start the program: /);
});
