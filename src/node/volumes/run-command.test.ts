import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CommandError, runCommand } from './run-command.ts';

describe('run command', () => {
  it('gives what the program said', async () => {
    assert.deepEqual(await runCommand('echo', ['a b', '$HOME']), { stdout: 'a b $HOME\n' });
  });

  it('fails with what the program complained about', async () => {
    await assert.rejects(runCommand('ls', ['/nonexistent']), (error) => {
      return error instanceof CommandError && /nonexistent.*No such file/.test(error.message);
    });
  });

  it('fails where there is no such program', async () => {
    await assert.rejects(runCommand('no-such-program-of-ours', []), CommandError);
  });

  it('hands on nothing of our environment', async () => {
    const { stdout } = await runCommand('env', []);
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    assert.deepEqual(new Set(names), new Set(['LC_ALL', 'PATH']));
  });

  it('stops a program that nobody waits for any more', async () => {
    const giveUp = new AbortController();
    const asked = runCommand('sleep', ['600'], { signal: giveUp.signal });
    giveUp.abort(new Error('no longer wanted'));
    await assert.rejects(asked, /no longer wanted/);
    await assert.rejects(runCommand('true', [], { signal: giveUp.signal }), /no longer wanted/);
  });

  it('stops a program that takes too long', async () => {
    await assert.rejects(runCommand('sleep', ['600'], { timeoutMs: 20 }), /it took too long/);
  });

  it('stops a program that says too much', async () => {
    await assert.rejects(runCommand('yes', []), CommandError);
  });
});
