/**
 * The source node is lost after the target has the whole guest, and before the migration is committed: Selfsame does not
 * guess. The user decides, and a node that returns later follows the decision.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import {
  aMigration,
  assertInvariants,
  migrationPhase,
  startMigratingVm,
  VM,
  locateGuest,
  writeEverywhere,
} from '#test/support/migrating-vm.ts';
import type { Loose } from '#test/support/test-api.ts';
import { startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';

const RECOVERY = 'selfsame.io/recovery';
/** Time until a node is reported as not answering. */
const SILENCE_MS = 60_000;
const MIGRATION = 'go';

interface Scene {
  readonly plane: VmPlane;
  readonly source: SimulatedNode;
  readonly target: SimulatedNode;
}

async function loseSource(t: TestContext, nodes = 2): Promise<Scene> {
  const plane = await startVmPlane(t, { nodes });
  await startMigratingVm(plane);
  await writeEverywhere(plane, 'kept');
  const { node: source } = locateGuest(plane);
  plane.streams.onMessage = ({ type }) => {
    if (type === 'stored') source.crashAgent();
  };
  await plane.beginApply(aMigration(MIGRATION));
  await plane.settle();
  const { status } = await plane.get('VirtualMachineInstanceMigration', MIGRATION);
  const target = plane.node(status.migrationState.targetNode);
  plane.streams.onMessage = undefined;
  await plane.killNode(source.name);
  await plane.advance(SILENCE_MS);
  return { plane, source, target };
}

async function decide(plane: VmPlane, where: string): Promise<string> {
  const url = `/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations/${MIGRATION}`;
  const body = { metadata: { annotations: { [RECOVERY]: where } } };
  const { status, body: answer } = await plane.call('PATCH', url, { body });
  await plane.settle();
  return status === 200 ? 'taken' : `${status} ${answer.message}`;
}

async function condition(plane: VmPlane): Promise<Loose> {
  const { status } = await plane.get('VirtualMachineInstanceMigration', MIGRATION);
  return status.conditions.find(({ type }: Loose) => type === 'ManualRecoveryRequired');
}

const running = ({ nodes }: VmPlane) =>
  nodes.flatMap((node) =>
    node.livingGuests(`default/${VM}`).flatMap(({ record }) => (record.current.state === 'running' ? [node.name] : [])),
  );

describe('a guest whose node was lost when the target had the whole guest', () => {
  it('waits for a decision, which the source makes itself when it returns', async (t) => {
    const { plane, source } = await loseSource(t);
    assert.deepEqual(running(plane), []);
    const { status, message } = await condition(plane);
    assert.equal(status, 'True');
    assert.match(
      message,
      new RegExp(`node ${source.name} does not respond.*annotation ${RECOVERY} \\(source or target\\)`),
    );
    assert.match(await decide(plane, 'both'), /^422 .*Unsupported value: "both": supported values: "source", "target"/);
    await plane.reviveNode(source.name);
    await plane.advance(SILENCE_MS);
    assert.match(await migrationPhase(plane, MIGRATION), /^Failed: /);
    assert.match(await decide(plane, 'target'), /^422 .*only while the condition ManualRecoveryRequired is True/);
    await assertInvariants(plane, 'kept');
    assert.equal(locateGuest(plane).node, source);
    assert.equal((await condition(plane)).status, 'False');
  });

  it('runs on the target when the user decides so', async (t) => {
    const { plane, source, target } = await loseSource(t);
    assert.equal(await decide(plane, 'target'), 'taken');
    await plane.advance(SILENCE_MS);
    assert.equal(await migrationPhase(plane, MIGRATION), 'Succeeded');
    assert.deepEqual(running(plane), [target.name]);
    assert.equal(locateGuest(plane).guest.getMemory('memory'), 'kept');
    const recovered = (await plane.eventsOf(VM)).filter((line) => line.startsWith('MigrationRecovered'));
    assert.deepEqual(recovered.length, 1);
    assert.match(recovered[0]!, new RegExp(`Make sure that node ${source.name} does not run it any more`));
    await plane.reviveNode(source.name);
    await plane.advance(SILENCE_MS);
    await assertInvariants(plane, 'kept');
    assert.equal(locateGuest(plane).node, target);
  });

  it('runs on the source when the user decides so and the source is back', async (t) => {
    const { plane, source, target } = await loseSource(t);
    assert.equal(await decide(plane, 'source'), 'taken');
    await plane.advance(SILENCE_MS);
    assert.match(await migrationPhase(plane, MIGRATION), /^Failed: the annotation selfsame.io\/recovery decided/);
    assert.deepEqual(running(plane), []);
    assert.deepEqual(target.livingGuests(), [], 'nothing is left on the target');
    await plane.reviveNode(source.name);
    await plane.advance(SILENCE_MS);
    await assertInvariants(plane, 'kept');
    assert.equal(locateGuest(plane).node, source);
    assert.equal(plane.startsOf(VM).length, 1);
  });

  it('is not started on a node that does not answer, even if the user decides so', async (t) => {
    const { plane, source, target } = await loseSource(t);
    await plane.killNode(target.name);
    await plane.advance(SILENCE_MS);
    assert.equal(await decide(plane, 'target'), 'taken');
    assert.match(
      (await condition(plane)).message,
      /Cannot recover the guest on the target node: node .* does not respond/,
    );
    assert.equal((await plane.list('Pod')).length, 2);
    await plane.reviveNode(target.name);
    await plane.advance(SILENCE_MS);
    assert.equal(await migrationPhase(plane, MIGRATION), 'Succeeded', 'the migration waited for the target');
    await plane.reviveNode(source.name);
    await plane.advance(SILENCE_MS);
    await assertInvariants(plane, 'kept');
  });

  it('can migrate again only when the lost node is removed from the cluster', async (t) => {
    const { plane, source, target } = await loseSource(t, 3);
    assert.equal(await decide(plane, 'target'), 'taken');
    await plane.advance(SILENCE_MS);
    await plane.apply(aMigration('further'));
    const { status } = await plane.get('VirtualMachineInstanceMigration', 'further');
    assert.equal(status.phase, 'Pending');
    assert.equal(status.message, `volume root waits for node ${source.name} to remove a leftover copy`);
    await plane.delete('Node', source.name);
    await plane.advance(SILENCE_MS);
    assert.equal(await migrationPhase(plane, 'further'), 'Succeeded');
    const { node } = locateGuest(plane);
    assert.ok(node !== source && node !== target, node.name);
    assert.equal(locateGuest(plane).guest.readState('nv'), 'kept');
  });
});
