/**
 * Hostile CEL expressions and regular expressions block the event loop for at most 100 ms: dozens of shapes, on large
 * objects, in many policies and webhooks at once, while they are evaluated and while they are compiled.
 */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Report } from '#test/load/hostile-scene.ts';

const LIMIT_MILLIS = 100;
/** A million of the simplest cost units take less on an idle machine; on a slower one the limit grows in proportion. */
const USUAL_UNITS_MILLIS = 20;
/** Without cost limits an expression would never end; only another thread can detect that. */
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
  assert.ok(report !== undefined, 'an expression blocks the event loop for minutes');
  return report;
}

describe('hostile expressions', () => {
  let report: Report;
  let limit: number;
  // A hostile expression blocks the loop in every run; other work of the machine does not.
  before(async () => {
    for (let tries = 1; ; tries++) {
      report = await runScene();
      limit = LIMIT_MILLIS * Math.max(1, report.unitsMillis / USUAL_UNITS_MILLIS);
      const longest = Math.max(report.evaluation.cpuMillis, report.compilation.cpuMillis);
      if (longest < limit || tries === MAX_TRIES) return;
    }
  });

  it('are all stopped by the cost limit', () => {
    for (const { status, message } of report.answers) {
      assert.equal(status, 422);
      assert.match(message, /resulted in error: operation cancelled: actual cost limit exceeded$/);
    }
  });

  it('do not block the event loop during evaluation', (t) => {
    const { cpuMillis, turns } = report.evaluation;
    t.diagnostic(`longest of ${turns} turns: ${cpuMillis.toFixed(0)} ms of CPU`);
    assert.ok(turns > report.answers.length * 2, `only ${turns} turns`);
    assert.ok(cpuMillis < limit, `one turn took ${cpuMillis.toFixed(0)} ms of CPU; expected below ${limit.toFixed(0)}`);
  });

  it('do not block the event loop during compilation', (t) => {
    const { cpuMillis, turns } = report.compilation;
    t.diagnostic(`longest of ${turns} turns: ${cpuMillis.toFixed(0)} ms of CPU`);
    assert.ok(cpuMillis < limit, `one turn took ${cpuMillis.toFixed(0)} ms of CPU; expected below ${limit.toFixed(0)}`);
  });
});
