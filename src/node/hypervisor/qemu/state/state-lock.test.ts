import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { lockState } from '#node/hypervisor/qemu/state/state-lock.ts';

function aState(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'state-lock-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return { state: { directory } };
}

const TAKEN = { name: 'HypervisorError', permanent: false, message: /another guest uses the persistent state/ };

test('locks the persistent state until the last process that inherited the lock exits', async (t) => {
  const definition = aState(t);
  const lock = await lockState(definition);
  assert.ok(lock !== undefined);
  await assert.rejects(lockState(definition), TAKEN);

  const guest = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', lock.fd] });
  t.after(() => guest.kill('SIGKILL'));
  await once(guest, 'spawn');
  await lock.close();
  await assert.rejects(lockState(definition), TAKEN);
  guest.kill('SIGKILL');
  await once(guest, 'exit');

  await (await lockState(definition))?.close();
});

test('locks nothing without persistent state', async () => {
  assert.equal(await lockState({}), undefined);
});

test('does not follow a link in place of the lock', async (t) => {
  const definition = aState(t);
  symlinkSync('/dev/null', join(definition.state.directory, 'lock'));
  await assert.rejects(lockState(definition), { code: 'ELOOP' });
});
