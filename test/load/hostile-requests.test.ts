/**
 * No request blocks the event loop for 100 ms: neither while it is handled, nor while controllers react to the object that
 * it wrote, nor in later writes of that object.
 */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { attacksIn } from '#test/load/hostile-requests.ts';
import type { RequestsReport } from '#test/load/hostile-requests-scene.ts';

const LIMIT_MILLIS = 100;
/** The reference work takes less on a machine that is not overloaded; on a slower one the limit grows in proportion. */
const USUAL_REFERENCE_MILLIS = 100;
/** A request of quadratic cost would take minutes; only another thread can detect that. */
const GIVE_UP_MILLIS = 300_000;

async function runScene(): Promise<RequestsReport> {
  const worker = new Worker(new URL('./hostile-requests-scene.ts', import.meta.url));
  const report = await new Promise<RequestsReport | undefined>((resolve, reject) => {
    const giveUp = setTimeout(() => resolve(undefined), GIVE_UP_MILLIS);
    worker.once('message', (message: RequestsReport) => {
      clearTimeout(giveUp);
      resolve(message);
    });
    worker.once('error', reject);
  });
  await worker.terminate();
  assert.ok(report !== undefined, 'a request blocks the event loop for minutes');
  return report;
}

describe('no request stalls the server', () => {
  let report: RequestsReport;
  before(async () => {
    report = await runScene();
  });

  it('answers each attack as expected', () => {
    assert.deepEqual(report.surprises, []);
  });

  for (const name of Object.keys(attacksIn('any'))) {
    it(name, (t) => {
      const millis = report.longest[name] ?? Infinity;
      const limit = LIMIT_MILLIS * Math.max(1, report.referenceMillis / USUAL_REFERENCE_MILLIS);
      t.diagnostic(`longest turn: ${millis.toFixed(0)} ms of CPU`);
      assert.ok(millis < limit, `one turn took ${millis.toFixed(0)} ms of CPU; expected below ${limit.toFixed(0)}`);
    });
  }
});
