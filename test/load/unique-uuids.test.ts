/** A hundred thousand VMs, each with its own UUID and serial. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Report, Work } from '#test/load/unique-uuids-scene.ts';
import { FULL_RUN } from '#test/support/full-run.ts';

/** A full run makes the promised number; every run makes enough to find a generator that repeats itself. */
const CREATES = FULL_RUN ? 100_000 : 10_000;

async function runScene(work: Work): Promise<Report> {
  const worker = new Worker(new URL('./unique-uuids-scene.ts', import.meta.url), { workerData: work });
  try {
    return await new Promise<Report>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the thread ended with code ${code}`)));
    });
  } finally {
    await worker.terminate();
  }
}

test(`${CREATES} created VMs have different uuids and serials`, async (t) => {
  const { created, uuids, serials, mostStored, residentMiB } = await runScene({ creates: CREATES });
  t.diagnostic(`${created} created, at most ${mostStored} at a time; ${residentMiB.toFixed(0)} MiB in the end`);
  assert.ok(created >= CREATES, `only ${created} were created`);
  assert.equal(uuids, created);
  assert.equal(serials, created);
});
