import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProgramError, runCommand } from '#node/volumes/local/run-command.ts';

describe('run command', () => {
  it('returns the output of the program', async () => {
    assert.deepEqual(await runCommand('echo', ['a b', '$HOME']), { stdout: 'a b $HOME\n' });
  });

  it('throws the error output of the program', async () => {
    await assert.rejects(runCommand('ls', ['/nonexistent']), (error) => {
      return error instanceof ProgramError && /nonexistent.*No such file/.test(error.message);
    });
  });

  it('throws if there is no such program', async () => {
    await assert.rejects(runCommand('no-such-program-of-ours', []), ProgramError);
  });

  it('passes nothing of our environment', async () => {
    const { stdout } = await runCommand('env', []);
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    assert.deepEqual(new Set(names), new Set(['LC_ALL', 'PATH']));
  });

  it('stops a program when its signal is aborted', async () => {
    const giveUp = new AbortController();
    const running = runCommand('sleep', ['600'], { signal: giveUp.signal });
    giveUp.abort(new Error('no longer wanted'));
    await assert.rejects(running, /no longer wanted/);
    await assert.rejects(runCommand('true', [], { signal: giveUp.signal }), /no longer wanted/);
  });

  it('stops a program that takes too long', async () => {
    await assert.rejects(runCommand('sleep', ['600'], { timeoutMs: 20 }), /it took too long/);
  });

  it('stops a program that writes too much output', async () => {
    await assert.rejects(runCommand('yes', []), ProgramError);
  });
});
