import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostVm } from '#api/host-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import {
  DeviceReports,
  GATHER_MS,
  MAX_GATHER_MS,
  MAX_VMS_PER_CALL,
  type DeviceReport,
} from '#controllers/device-map/device-reports.ts';

/** Starts reports with nodes that respond when the test says so. */
function scene() {
  const clock = new FakeClock();
  const stopping = new AbortController();
  const calls: { node: string; vmIds: readonly string[]; answer(): void; fail(): void }[] = [];
  const hosts = {
    list: (node: string, vmIds: readonly string[]) =>
      new Promise<readonly HostVm[]>((resolve, reject) => {
        const answer = () => resolve(vmIds.filter((id) => id !== 'unknown').map(aVm));
        calls.push({ node, vmIds, answer, fail: () => reject(new Error('no answer in time')) });
      }),
  };
  const warned: unknown[] = [];
  const log = { ...silentLog, warn: (facts: unknown) => void warned.push(facts) };
  const reports = new DeviceReports({ hosts, clock, log, signal: stopping.signal });
  const describeCalls = () => calls.map(({ node, vmIds }) => `${node}: ${vmIds.join(' ')}`);
  return { clock, reports, calls, describeCalls, stopping, warned };
}

function idOf(report: DeviceReport): string | undefined {
  return 'vm' in report ? report.vm?.vmId : undefined;
}

function aVm(vmId: string): HostVm {
  const empty = { vmName: '', emulatedMachine: '', memSize: 0, smp: '1', uuid: '' };
  return { ...empty, vmId, status: 'Up', devices: [] };
}

test('reads that arrive together share a call, per node', async () => {
  const { clock, reports, calls, describeCalls } = scene();
  const reads = [reports.read('n1', 'a'), reports.read('n2', 'b'), reports.read('n1', 'c')];
  await clock.advance(GATHER_MS - 1);
  assert.deepEqual(describeCalls(), []);
  reads.push(reports.read('n1', 'd'));
  await clock.advance(1);
  assert.deepEqual(describeCalls(), ['n2: b'], 'another read has just arrived');
  await clock.advance(GATHER_MS - 1);
  assert.deepEqual(describeCalls(), ['n2: b', 'n1: a c d']);
  for (const call of calls) call.answer();
  assert.deepEqual((await Promise.all(reads)).map(idOf), ['a', 'b', 'c', 'd']);
});

test('no read waits longer than the maximum', async () => {
  const { clock, reports, calls } = scene();
  for (let n = 0; n * GATHER_MS < MAX_GATHER_MS * 2; n += 0.5) {
    void reports.read('n1', `vm-${n}`).catch(() => {});
    await clock.advance(GATHER_MS / 2);
  }
  assert.equal(calls.length, 1);
  assert.equal(calls[0]?.vmIds.length, (MAX_GATHER_MS / GATHER_MS) * 2);
});

test('a node has one call at a time; later reads share the next call, each VM once', async () => {
  const { clock, reports, calls, describeCalls } = scene();
  const first = reports.read('n1', 'a');
  await clock.advance(GATHER_MS);
  const late = [reports.read('n1', 'b'), reports.read('n1', 'a'), reports.read('n1', 'b')];
  await clock.advance(GATHER_MS * 10);
  assert.deepEqual(describeCalls(), ['n1: a']);
  calls[0]?.answer();
  await first;
  await settle();
  assert.deepEqual(describeCalls(), ['n1: a', 'n1: b a'], 'a read is not served by a call that began before it');
  calls[1]?.answer();
  const both = await Promise.all(late);
  assert.equal(both[0], both[2]);
});

test('a call has a maximum size, and the rest is in the next call', async () => {
  const { clock, reports, calls } = scene();
  const reads = Array.from({ length: MAX_VMS_PER_CALL + 1 }, (_, n) => reports.read('n1', `vm-${n}`));
  await clock.advance(GATHER_MS);
  calls[0]?.answer();
  await settle();
  assert.deepEqual(
    calls.map(({ vmIds }) => vmIds.length),
    [MAX_VMS_PER_CALL, 1],
  );
  calls[1]?.answer();
  assert.equal((await Promise.all(reads)).length, MAX_VMS_PER_CALL + 1);
});

test('a failed call fails all its reads with a growing delay and is logged once', async () => {
  const { clock, reports, calls, warned } = scene();
  const lost = [reports.read('n1', 'a'), reports.read('n1', 'b')];
  await clock.advance(GATHER_MS);
  const next = reports.read('n1', 'a');
  calls[0]?.fail();
  assert.deepEqual(await Promise.all(lost), [{ retryAfterMs: 500 }, { retryAfterMs: 500 }]);
  await settle();
  calls[1]?.fail();
  assert.deepEqual(await next, { retryAfterMs: 1000 });
  assert.equal(warned.length, 2);

  for (const [n, end] of (['answer', 'fail'] as const).entries()) {
    const read = reports.read('n1', 'a');
    await clock.advance(GATHER_MS);
    calls[n + 2]?.[end]();
    assert.deepEqual(await read, end === 'answer' ? { vm: aVm('a') } : { retryAfterMs: 500 });
  }
});

test('a VM that the node does not have is undefined', async () => {
  const { clock, reports, calls } = scene();
  const read = reports.read('n1', 'unknown');
  await clock.advance(GATHER_MS);
  calls[0]?.answer();
  assert.deepEqual(await read, { vm: undefined });
});

test('pending reads are rejected when the controller stops, and no call follows', async () => {
  const { clock, reports, describeCalls, stopping } = scene();
  const read = reports.read('n1', 'a');
  stopping.abort();
  await assert.rejects(read, /stopping/);
  await assert.rejects(reports.read('n1', 'b'), /stopping/);
  await clock.advance(GATHER_MS);
  assert.deepEqual(describeCalls(), []);
  assert.equal(clock.pendingTimers, 0);
});
