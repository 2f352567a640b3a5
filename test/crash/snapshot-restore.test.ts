/**
 * The server is lost after each write that a snapshot or a restore costs on its way, alone or with all agents. The next
 * one takes over: what was asked for comes to its end, once; who the VM is and what is on its disks is what it is to be;
 * the VM is free again; and when everything is deleted, nothing is left behind (see snapshot-scene.ts). After each write
 * in `npm run test:full`; after every third of them else: a point costs as much as a whole life of a VM.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Work } from '#test/crash/snapshot-scene.ts';
import { FULL_RUN } from '#test/support/full-run.ts';

interface Case extends Work {
  readonly atLeast: number;
}

/** Every one of so many points. */
const SPARING = FULL_RUN ? 1 : 5;

const cases: Readonly<Record<string, Case>> = {
  'a restore in place': { scenario: 'restoreInPlace', atLeast: 40 },
  'a restore in place, with all agents': { scenario: 'restoreInPlace', agents: true, from: 1, step: 2, atLeast: 20 },
  'a snapshot of a running VM': { scenario: 'snapshotOfRunning', atLeast: 25 },
  'a snapshot of a running VM, with all agents': { scenario: 'snapshotOfRunning', agents: true, atLeast: 25 },
  'a restore of a VM that is gone': { scenario: 'restoreOfDeleted', step: 2, atLeast: 15 },
  'a restore to another name': { scenario: 'restoreToAnotherName', step: 2, atLeast: 15 },
  'a VM of old that starts': { scenario: 'oldVm', step: 2, atLeast: 8 },
};

describe('the server is lost after any write of', { concurrency: 2 }, () => {
  for (const [name, { atLeast, step = 1, ...work }] of Object.entries(cases)) {
    it(name, async (t) => {
      const points = await run({ ...work, step: step * SPARING });
      t.diagnostic(`${points} points`);
      assert.ok(points >= Math.floor(atLeast / SPARING), `only ${points} points`);
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
