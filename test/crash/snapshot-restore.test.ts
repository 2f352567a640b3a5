/**
 * Kills the server after each write of a snapshot or a restore, alone or with all agents. After the restart the request
 * completes once, identity and disks of the VM are as they should be, the VM is not held, and when everything is deleted,
 * nothing is left (see snapshot-scene.ts). A full run (`npm run test:full`) tests every write, another run a sample,
 * because each point takes a whole life of a VM.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Work } from '#test/crash/snapshot-scene.ts';
import { FULL_RUN } from '#test/support/full-run.ts';

interface Case extends Work {
  readonly atLeast: number;
}

/** One of this many points is tested. */
const SAMPLING = FULL_RUN ? 1 : 5;

const cases: Readonly<Record<string, Case>> = {
  'a restore in place': { scenario: 'restoreInPlace', atLeast: 40 },
  'a restore in place, with all agents': { scenario: 'restoreInPlace', agents: true, from: 1, step: 2, atLeast: 20 },
  'a restore in place of a protected VM': { scenario: 'restoreOfProtected', step: FULL_RUN ? 1 : 3, atLeast: 25 },
  'a snapshot of a running VM': { scenario: 'snapshotOfRunning', atLeast: 25 },
  'a snapshot of a running VM, with all agents': { scenario: 'snapshotOfRunning', agents: true, atLeast: 25 },
  'a restore of a deleted VM': { scenario: 'restoreOfDeleted', step: 2, atLeast: 15 },
  'a restore to another name': { scenario: 'restoreToAnotherName', step: 2, atLeast: 15 },
  'a start of a VM of an older version': { scenario: 'oldVm', step: 2, atLeast: 8 },
};

describe('the server is killed after any write of', { concurrency: 2 }, () => {
  for (const [name, { atLeast, step = 1, ...work }] of Object.entries(cases)) {
    it(name, async (t) => {
      const points = await run({ ...work, step: step * SAMPLING });
      t.diagnostic(`${points} points`);
      assert.ok(points >= Math.floor(atLeast / SAMPLING), `only ${points} points`);
    });
  }
});

async function run(work: Work): Promise<number> {
  const worker = new Worker(new URL('./snapshot-scene.ts', import.meta.url), { workerData: work });
  try {
    return await new Promise<number>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the thread ended with code ${code}`)));
    });
  } finally {
    await worker.terminate();
  }
}
