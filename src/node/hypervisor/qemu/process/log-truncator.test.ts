import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { LogTruncator } from '#node/hypervisor/qemu/process/log-truncator.ts';

const LIMIT = 4 * 1024 * 1024;

test('truncates logs that grew too long each time, and keeps the others', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-logs-'));
  const [long, short] = [join(dir, 'long'), join(dir, 'short')];
  const clock = new FakeClock();
  const keeper = new LogTruncator(clock, () => [join(dir, 'gone'), long, short]);
  try {
    await appendFile(short, 'kept');
    keeper.start();
    for (let i = 0; i < 2; i++) {
      await appendFile(long, 'x');
      await truncate(long, LIMIT + 1);
      await clock.advance(60_000);
      while (clock.pendingTimers === 0) await clock.advance(0);
      assert.equal((await stat(long)).size, 0);
    }
    assert.equal((await stat(short)).size, 4);
    keeper.stop();
    assert.equal(clock.pendingTimers, 0);
  } finally {
    await rm(dir, { recursive: true });
  }
});
