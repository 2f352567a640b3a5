/**
 * Nodes that do not report any more. It is unknown whether their guests still run. So that no VM ever runs twice, the
 * instance stays until its pod is gone, and the pod until its agent removes it or a user deletes it by force. The plane
 * itself asserts, whenever it settles, that no two guests of one VM run.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
/** Longer than pods tolerate a lost node. */
const OUTAGE_MS = 400_000;

const nodeOf = (plane: VmPlane, vm: string): string => plane.startsOf(vm).at(-1)!.node;
const readyOf = async (plane: VmPlane, kind: string, name: string): Promise<string> =>
  (await plane.get(kind, name)).status.conditions.find((one: Loose) => one.type === 'Ready').status;

test('lost nodes', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aVm('db', ALWAYS));
  const guest = plane.guest('db');
  const lost = nodeOf(plane, 'db');

  await t.test('a node that is away for a short time keeps its guests', async () => {
    await plane.killNode(lost);
    await plane.advance(60_000);
    assert.equal(await readyOf(plane, 'Node', lost), 'Unknown');
    assert.equal(await readyOf(plane, 'VirtualMachine', 'db'), 'False');
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 1');
    await plane.startAgent(lost);
    assert.equal(await readyOf(plane, 'Node', lost), 'True');
    assert.equal(await readyOf(plane, 'VirtualMachine', 'db'), 'True');
    assert.equal(plane.guest('db'), guest);
  });

  await t.test('an agent without API access leaves its guests alone, and reports their state later', async () => {
    const [node, second] = [plane.node(lost), aVm('web', { runStrategy: 'RerunOnFailure' })];
    second.spec.template.spec.nodeSelector = { 'kubernetes.io/hostname': lost };
    await plane.apply(second);
    node.isolate();
    await plane.advance(120_000);
    assert.equal(await readyOf(plane, 'Node', lost), 'Unknown');
    assert.equal(plane.guest('db'), guest);
    plane.guest('web').shutDown();
    await plane.advance(30_000);
    assert.equal(await plane.summaryOf('web'), 'Running, VMI Running, no guest, 1');
    node.reconnect();
    await plane.advance(60_000);
    assert.equal(await readyOf(plane, 'Node', lost), 'True');
    assert.equal(plane.guest('db'), guest);
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 1');
    assert.equal(await plane.summaryOf('web'), 'Stopped, no VMI, no guest, 1');
  });

  await t.test('a VM on a lost node is not started elsewhere', async () => {
    await plane.killNode(lost);
    await plane.advance(OUTAGE_MS);
    assert.equal(await plane.summaryOf('db'), 'Stopped, VMI Failed, running, 1');
    const { metadata, status } = await plane.get('VirtualMachineInstance', 'db');
    assert.equal(status.reason, 'NodeLost');
    // The instance waits for its pod, which only the agent removes.
    assert.ok(metadata.deletionTimestamp !== undefined);
    assert.equal((await plane.list('Pod')).length, 1);
  });

  await t.test('it starts again when the node is back and has stopped the old guest', async () => {
    await plane.startAgent(lost);
    assert.equal(guest.record.current.state, 'ended');
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 2');
    assert.notEqual(plane.guest('db'), guest);
  });

  await t.test('it starts elsewhere when the node was switched off and its Node deleted', async () => {
    const gone = nodeOf(plane, 'db');
    await plane.killNode(gone);
    plane.guest('db').crash('power lost');
    await plane.delete('Node', gone);
    await plane.advance(60_000);
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 3');
    assert.notEqual(nodeOf(plane, 'db'), gone);
    await plane.startAgent(gone);
    assert.deepEqual([...plane.node(gone).host.guests()], [], 'nothing is left of the old guest');
    assert.equal(await readyOf(plane, 'Node', gone), 'True');
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 3');
  });

  await t.test('a stop waits for the node, unless the pod is deleted by force', async () => {
    const silent = nodeOf(plane, 'db');
    const last = plane.guest('db');
    await plane.killNode(silent);
    assert.equal(await plane.runVerb('stop', 'db'), '202');
    await plane.advance(60_000);
    assert.equal(await plane.summaryOf('db'), 'Stopping, VMI Running, running, 3');
    const [pod] = await plane.list('Pod');
    await plane.delete('Pod', pod.metadata.name, { gracePeriodSeconds: 0 });
    assert.equal(await plane.summaryOf('db'), 'Stopped, no VMI, running, 3');
    await plane.startAgent(silent);
    assert.deepEqual(last.record.current, { state: 'ended', how: 'destroyed' });
    assert.equal(await plane.summaryOf('db'), 'Stopped, no VMI, no guest, 3');
  });
});
