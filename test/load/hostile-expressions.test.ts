/**
 * A hostile expression or regular expression cannot hold the event loop longer than 100 ms: not one of dozens of
 * shapes, on large objects, in many policies and webhooks at once, nor while they are compiled.
 */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Report } from '#test/load/hostile-scene.ts';

const LIMIT_MILLIS = 100;
/** A million of the simplest units take less where nothing else runs; then the limit grows in proportion. */
const USUAL_UNITS_MILLIS = 20;
/** Whoever takes the prices away makes an expression that does not end: only another thread can tell. */
const GIVE_UP_MILLIS = 120_000;
const MAX_TRIES = 3;

async function runScene(): Promise<Report> {
  const worker = new Worker(new URL('./hostile-scene.ts', import.meta.url));
  const report = await new Promise<Report | undefined>((resolve, reject) => {
    const giveUp = setTimeout(() => resolve(undefined), GIVE_UP_MILLIS);
    worker.once('message', (message: Report) => {
      clearTimeout(giveUp);
      resolve(message);
    });
    worker.once('error', reject);
  });
  await worker.terminate();
  assert.ok(report !== undefined, 'an expression holds the event loop for minutes');
  return report;
}

describe('hostile expressions', () => {
  let report: Report;
  let limit: number;
  // What holds the loop holds it each time; what only the machine's other work has stretched does not.
  before(async () => {
    for (let tries = 1; ; tries++) {
      report = await runScene();
      limit = LIMIT_MILLIS * Math.max(1, report.unitsMillis / USUAL_UNITS_MILLIS);
      const longest = Math.max(report.judging.cpuMillis, report.compiling.cpuMillis);
      if (longest < limit || tries === MAX_TRIES) return;
    }
  });

  it('were all stopped by what they may cost', () => {
    for (const { status, message } of report.answers) {
      assert.equal(status, 422);
      assert.match(message, /resulted in error: operation cancelled: actual cost limit exceeded$/);
    }
  });

  it('do not hold the event loop while they judge requests', (t) => {
    const { cpuMillis, turns } = report.judging;
    t.diagnostic(`longest of ${turns} turns: ${cpuMillis.toFixed(0)} ms of CPU`);
    assert.ok(turns > report.answers.length * 2, `only ${turns} turns`);
    assert.ok(cpuMillis < limit, `one turn took ${cpuMillis.toFixed(0)} ms of CPU; expected below ${limit.toFixed(0)}`);
  });

  it('do not hold it while they are compiled', (t) => {
    const { cpuMillis, turns } = report.compiling;
    t.diagnostic(`longest of ${turns} turns: ${cpuMillis.toFixed(0)} ms of CPU`);
    assert.ok(cpuMillis < limit, `one turn took ${cpuMillis.toFixed(0)} ms of CPU; expected below ${limit.toFixed(0)}`);
  });
});
