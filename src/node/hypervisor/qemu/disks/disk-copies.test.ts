/** Copies that fail, with a simulated QEMU. Real copies are in test/e2e/hypervisor-qemu.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { HypervisorError, type DiskCopy } from '#node/hypervisor/hypervisor.ts';
import { copyName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { checkFreeSpace, copySpaceBytes } from '#node/hypervisor/qemu/disks/copy-space.ts';
import { DiskCopies } from '#node/hypervisor/qemu/disks/disk-copies.ts';
import type { CopyRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import { openScriptedMonitor, type Command } from '#node/hypervisor/qemu/testing/scripted-monitor.ts';
import { SimulatedBlocks } from '#node/hypervisor/qemu/testing/simulated-blocks.ts';

/** An existing file, which is never written: the simulated QEMU opens nothing. */
const path = import.meta.filename;
const COPIES: readonly DiskCopy[] = [
  { copyId: 'a', deviceId: 'disk-a', path },
  { copyId: 'b', deviceId: 'disk-b', path },
];

class SimulatedQemu extends SimulatedBlocks {
  /** Reasons by refused command. */
  readonly refused = new Map<string, string>();

  override answer(command: Command): unknown {
    const { execute, arguments: args = {} } = command;
    const refusal = this.refused.get(execute);
    if (refusal !== undefined) return new Error(refusal);
    switch (execute) {
      case 'query-block':
        return COPIES.map(({ deviceId }) => ({
          qdev: deviceId,
          inserted: { 'node-name': `of-${deviceId}`, image: { 'virtual-size': 4096, 'actual-size': 4096 } },
        }));
      case 'blockdev-create':
        this.setJob(args['job-id'], 'concluded');
        return {};
      case 'transaction':
        for (const { data } of args['actions'] as { data: { 'job-id': string } }[])
          this.setJob(data['job-id'], 'running');
        return {};
      case 'job-cancel':
        this.conclude(String(args['id']), 'cancelled');
        return {};
      default:
        return super.answer(command);
    }
  }

  conclude(id: string, error?: string): void {
    const job = this.jobs.get(id);
    if (job !== undefined) Object.assign(job, { status: 'concluded', ...(error !== undefined && { error }) });
  }
}

async function scene() {
  const clock = new FakeClock();
  const qemu = new SimulatedQemu();
  const qmp = await openScriptedMonitor(clock, (command) => qemu.answer(command));
  const observed = { failures: 0, ended: false };
  let records: readonly CopyRecord[] = [];
  const copies = new DiskCopies({
    ...{ clock, bytesPerSecond: undefined },
    hasEnded: () => observed.ended,
    withQmp: (_verb, work) => work(qmp),
    pathOf: async (_copyId, file) => file,
    releasePath: async () => undefined,
    onFailure: async () => void observed.failures++,
    records: () => records,
    write: async (next) => void (records = next),
  });
  return { qemu, copies, observed, records: () => records };
}

for (const command of ['blockdev-add', 'blockdev-create', 'transaction']) {
  test(`a set of copies that cannot start leaves nothing behind: ${command}`, async () => {
    const { qemu, copies, records } = await scene();
    qemu.refused.set(command, 'injected refusal');

    await assert.rejects(copies.start(COPIES), /injected refusal/);

    assert.deepEqual([[...qemu.nodes], [...qemu.jobs], records()], [[], [], []]);
    qemu.refused.clear();
    await copies.start(COPIES);
    assert.equal((await copies.state('b'))?.state, 'copying');
  });
}

test('reports why a copy failed, and lets the guest continue', async () => {
  const { qemu, copies, observed } = await scene();
  await copies.start(COPIES);
  qemu.conclude(copyName('a'), 'No space left on device');

  assert.deepEqual(await copies.state('a'), { state: 'failed', message: 'No space left on device' });
  assert.equal(observed.failures, 1);
  assert.equal((await copies.state('b'))?.state, 'copying');
});

test('lets the guest continue after a cancelled copy that may have failed a write', async () => {
  const { qemu, copies, observed } = await scene();
  await copies.start(COPIES);
  qemu.conclude(copyName('a'), 'No space left on device');
  await copies.end('a');
  assert.equal(observed.failures, 1);

  qemu.conclude(copyName('b'));
  await copies.state('b');
  await copies.end('b');
  assert.equal(observed.failures, 1, 'a finished copy cannot have failed a write');
});

test('reports a copy as failed if its image cannot be flushed', async () => {
  const { qemu, copies } = await scene();
  await copies.start(COPIES);
  qemu.conclude(copyName('a'));
  qemu.refused.set('blockdev-reopen', 'Error flushing drive');

  const state = await copies.state('a');

  assert.ok(state?.state === 'failed' && state.message.includes('Error flushing drive'));
});

test('closes the file of a copy before reporting it as done', async () => {
  const { qemu, copies } = await scene();
  await copies.start(COPIES);
  qemu.conclude(copyName('a'));
  assert.ok(qemu.nodes.has(copyName('a')));

  assert.deepEqual(await copies.state('a'), { state: 'done' });

  assert.ok(!qemu.nodes.has(copyName('a')));
});

test('a recorded copy without a job does not exist and can be started', async () => {
  const { qemu, copies } = await scene();
  await copies.start(COPIES);
  // The state after a kill between the record and the start.
  qemu.jobs.clear();

  assert.equal(await copies.state('a'), undefined);
  await copies.start(COPIES);
  assert.equal((await copies.state('a'))?.state, 'copying');
});

test('handles concurrent queries and ends', async () => {
  const { qemu, copies, records } = await scene();
  await copies.start(COPIES);
  for (const { copyId } of COPIES) qemu.conclude(copyName(copyId));

  const queries = COPIES.flatMap(({ copyId }) => [copies.state(copyId), copies.state(copyId)]);
  const ends = COPIES.map(({ copyId }) => copies.end(copyId));

  for (const query of queries) assert.deepEqual(await query, { state: 'done' });
  await Promise.all(ends);
  assert.deepEqual([[...qemu.nodes], [...qemu.jobs], records()], [[], [], []]);
});

test('limits the number of copies', async () => {
  const { copies } = await scene();
  const many = Array.from({ length: 257 }, (_, i) => ({ copyId: String(i), deviceId: 'disk-a', path }));
  await assert.rejects(copies.start(many), HypervisorError);
});

test('adds up the space of all copies on a file system', async () => {
  const half = { path, bytes: Number.MAX_SAFE_INTEGER / 2 };
  await assert.rejects(checkFreeSpace([half, half]), { permanent: true, message: /not enough space for/ });
  await checkFreeSpace([{ path, bytes: 1 }]);
  assert.equal(copySpaceBytes({ bytes: 2 ** 30, allocatedBytes: 5 }), 5 + 1024 * 256 + 2 ** 20);
});
