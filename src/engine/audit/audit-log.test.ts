import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AuditLog } from '#engine/audit/audit-log.ts';
import { aRecord } from '#engine/audit/testing/a-record.ts';
import { ManualClock } from '#engine/audit/testing/manual-clock.ts';
import { silentLog, type Log } from '#lib/log.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';

/** An in-memory file that can be full. */
function aFile() {
  const file = {
    lines: [] as { auditID: string; annotations: Record<string, string> }[],
    writes: 0,
    isFull: false,
    isClosed: false,
    async append(bytes: Buffer) {
      if (file.isFull) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
      file.writes++;
      for (const line of bytes.toString().trimEnd().split('\n')) file.lines.push(JSON.parse(line));
    },
    async close() {
      file.isClosed = true;
    },
  };
  return file;
}

function aLog(maxQueued?: number, log: Log = silentLog) {
  const [file, clock, metrics] = [aFile(), new ManualClock(), new MetricRegistry()];
  const audit = new AuditLog({ file, clock, log, metrics, maxQueued });
  let count = 0;
  const take = (times = 1) => {
    for (let i = 0; i < times; i++) audit.take(aRecord({ id: String(++count) }));
  };
  return { file, clock, audit, metrics, take, ids: () => file.lines.map(({ auditID }) => Number(auditID)) };
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

test('nothing is written while requests are served; later everything is written in order and in few writes', async () => {
  const { file, clock, take, ids } = aLog();
  take(500);
  assert.equal(file.writes, 0);
  await clock.advance(100);
  assert.deepEqual(ids(), upTo(500));
  assert.equal(file.writes, 3);
  assert.equal(clock.pendingTimers, 0, 'an idle log must have no timer');
});

test('records that are added during a write are written, too', async () => {
  const { file, audit, take, ids } = aLog();
  const { append } = file;
  file.append = async (bytes) => {
    if (file.writes < 3) take();
    await append(bytes);
  };
  take();
  await audit.flush();
  assert.deepEqual(ids(), [1, 2, 3, 4]);
});

test('a record that is added at the end of a batch is written with the next', async () => {
  // The end is some microtasks after the write; the test covers all of them.
  for (let moment = 0; moment < 12; moment++) {
    const { file, clock, audit, take, ids } = aLog();
    const { append } = file;
    file.append = async (bytes) => {
      await append(bytes);
      const takeLater = (turns: number) => queueMicrotask(() => (turns === 0 ? take() : takeLater(turns - 1)));
      if (file.writes === 1) takeLater(moment);
    };
    take();
    await audit.flush();
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(1000);
    assert.deepEqual(ids(), [1, 2], `after ${moment}`);
  }
});

test('while the disk is full requests continue, and later nothing queued is lost or duplicated', async () => {
  const { file, clock, metrics, take, ids } = aLog();
  file.isFull = true;
  take(3);
  await clock.advance(5000);
  take(2);
  assert.match(metrics.text(), /^selfsame_audit_writable 0$/m);
  file.isFull = false;
  await clock.advance(30_000);
  assert.deepEqual(ids(), upTo(5));
  assert.match(metrics.text(), /^selfsame_audit_writable 1$/m);
  assert.match(metrics.text(), /^apiserver_audit_event_total 5$/m);
});

test('dropped records are counted, and the next line reports their number', async () => {
  const { file, clock, metrics, take, ids } = aLog(4);
  file.isFull = true;
  take(7);
  file.isFull = false;
  await clock.advance(100);
  take(2);
  await clock.advance(100);
  assert.deepEqual(ids(), [1, 2, 3, 4, 8, 9]);
  const logged = file.lines.map(({ annotations }) => annotations['audit.selfsame.io/dropped-before']);
  assert.deepEqual(logged, [undefined, undefined, undefined, undefined, '3', undefined]);
  assert.match(metrics.text(), /^selfsame_audit_dropped_total 3$/m);
});

test('the queue is also bounded in bytes', async () => {
  const [file, clock, metrics] = [aFile(), new ManualClock(), new MetricRegistry()];
  const audit = new AuditLog({ file, clock, log: silentLog, metrics, maxQueuedBytes: 4000 });
  const take = () => audit.take(aRecord({ path: `/${'x'.repeat(2000)}` }));
  file.isFull = true;
  for (let i = 0; i < 20; i++) {
    take();
    // Lines are formatted after each turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.match(metrics.text(), /^selfsame_audit_dropped_total 18$/m);
  file.isFull = false;
  await clock.advance(60_000);
  take();
  await audit.close();
  assert.equal(file.lines.length, 3);
});

test('a full disk is logged once, and the lost records at the end', async () => {
  const logged: string[] = [];
  const log: Log = {
    ...silentLog,
    error: (fields, message) => void logged.push(`${message} ${JSON.stringify(fields)}`),
  };
  const { file, clock, audit, take } = aLog(4, log);
  file.isFull = true;
  take(6);
  await clock.advance(120_000);
  await audit.close();
  assert.equal(logged.length, 2);
  assert.match(logged[0]!, /^Cannot write the audit log/);
  assert.match(logged[1]!, /"lost":6/);
  assert.equal(clock.pendingTimers, 0);
});

test('a record that cannot be formatted counts as dropped', async () => {
  const { file, audit, take, clock } = aLog();
  audit.take(aRecord({ receivedMs: Number.NaN }));
  await clock.advance(100);
  assert.equal(file.writes, 0);
  take();
  await audit.close();
  assert.equal(file.lines[0]?.annotations['audit.selfsame.io/dropped-before'], '1');
});

test('closing writes the queued records', async () => {
  const { file, audit, take, ids } = aLog();
  take(3);
  await audit.close();
  assert.deepEqual(ids(), upTo(3));
  assert.ok(file.isClosed);
});
