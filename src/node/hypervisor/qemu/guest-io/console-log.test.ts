import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConsoleLog, readConsoleLogFile } from '#node/hypervisor/qemu/guest-io/console-log.ts';

const HALF = 8;

interface Case {
  readonly said: readonly string[];
  readonly want: string;
}

const cases: Record<string, Case> = {
  'no output': { said: [], want: '' },
  'all of a short output': { said: ['ab', 'cd'], want: 'abcd' },
  'exactly one half': { said: ['01234567'], want: '01234567' },
  'both halves': { said: ['01234567', '89ab'], want: '0123456789ab' },
  'drops the older half when the newer one is full': { said: ['01234567', '89abcdef', 'gh'], want: '89abcdefgh' },
  'one chunk that exceeds both halves': { said: ['0123456789abcdefghijkl'], want: '89abcdefghijkl' },
};

for (const [name, { said, want }] of Object.entries(cases)) {
  test(`console log: ${name}`, () =>
    inDirectory(async (dir) => {
      const path = join(dir, 'console.log');
      for (const text of said) {
        // Each node agent opens its own log.
        const log = new ConsoleLog(path, { halfBytes: HALF });
        await log.append(Buffer.from(text));
        await log.close();
      }
      assert.equal((await readConsoleLogFile(path)).toString(), want);
      for (const file of await readdir(dir)) assert.ok((await stat(join(dir, file))).size <= HALF);
    }));
}

async function inDirectory(run: (dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-console-'));
  try {
    await run(dir);
  } finally {
    await rm(dir, { recursive: true });
  }
}
