/** The life of a launcher pod and its guest: the node agent with the API server in process, on simulated guests. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HostVm } from '#api/host-api.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeAgent } from '#node/agent/node-agent.ts';
import { createFakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { NODE, PODS, VMIS, aLauncher, startAgentScene, type AgentScene } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const condition = (object: Loose, type: string): Loose =>
  (object.status.conditions ?? []).find((candidate: Loose) => candidate.type === type);
const exists = async ({ api }: AgentScene, url: string) => (await api.call('GET', url)).status === 200;
const listAll = (scene: AgentScene) =>
  scene.agent().host!.call('list', { fullStatus: true }, { signal: new AbortController().signal });
const stop = ({ api }: AgentScene, pod: string) => api.ok('DELETE', `${PODS}/${pod}`);

describe('a launcher pod', () => {
  it('runs its guest, and both objects report it', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
    const pod = await scene.pod('launcher-db');
    assert.equal(pod.status.phase, 'Running');
    assert.equal(condition(pod, 'Ready').status, 'True');
    assert.equal(pod.status.containerStatuses.length, 2);
    assert.ok(pod.status.containerStatuses.every((container: Loose) => container.ready && container.state.running));

    const { status } = await scene.vmi('db');
    assert.equal(status.machine.type, scene.hypervisor().get(id)?.machine);
    assert.deepEqual(status.interfaces, [{ name: 'default', mac: '02:00:00:00:00:01', infoSource: 'domain' }]);
    assert.deepEqual(status.currentCPUTopology, { sockets: 1, cores: 1, threads: 1 });
    assert.equal(status.memory.guestAtBoot, '128Mi');
    assert.equal(status.guestStarted.simulated, true);
    assert.match(status.deviceHash, /^[0-9a-f]{64}$/);
    assert.equal(status.deviceRevision, scene.clock.now());
    const [listed] = (await listAll(scene)).vmList ?? [];
    const { vmId, hash, deviceRevision, devices, uuid } = listed as HostVm;
    assert.deepEqual([vmId, hash, deviceRevision], [id, status.deviceHash, status.deviceRevision]);
    assert.equal(uuid, '2c38d57e-5f5c-4f0c-8a3a-7f2f0b0a1c11');
    const nic = devices.find(({ deviceId }) => deviceId === 'nic-default');
    assert.equal(typeof nic?.address === 'object' && nic.address['type'], 'pci');
    assert.equal('hotplug' in status, false);
    // Fields of other writers are kept.
    assert.equal(status.phase, 'Scheduled');
    assert.equal(status.nodeName, NODE);
  });

  it('is written only when something changes', async (t) => {
    const scene = await startAgentScene(t);
    scene.writes.length = 0;
    await scene.launch('db');
    const writes = scene.writes.filter((write) => !write.includes('/events'));
    assert.deepEqual(writes.sort(), [`PATCH ${PODS}/launcher-db/status`, `PUT ${VMIS}/db/status`]);
    scene.writes.length = 0;
    await scene.api.ok('PATCH', `${PODS}/launcher-db`, { body: { metadata: { labels: { touched: 'yes' } } } });
    await scene.settle();
    assert.deepEqual(scene.writes, []);
  });

  it('starts paused if requested, and reports it until it is resumed', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db', { startStrategy: 'Paused' });
    assert.equal(condition(await scene.vmi('db'), 'Paused').reason, 'PausedByUser');
    await scene.agent().resume(id);
    await scene.settle();
    assert.equal(condition(await scene.vmi('db'), 'Paused'), undefined);
    await scene.agent().pause(id);
    await scene.settle();
    assert.equal(condition(await scene.vmi('db'), 'Paused').status, 'True');
  });

  it('succeeds when the guest shuts down, and keeps its console until it is deleted', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.hypervisor().guest(id).print('last words\n');
    scene.hypervisor().guest(id).shutDown();
    await scene.settle();
    const pod = await scene.pod('launcher-db');
    assert.equal(pod.status.phase, 'Succeeded');
    assert.equal(pod.status.containerStatuses[0].state.terminated.exitCode, 0);
    const log = await scene.agent().logs('default', 'launcher-db', 'guest-console-log')!.read();
    assert.match(log.toString(), /last words/);
    await stop(scene, 'launcher-db');
    await scene.settle();
    assert.equal(await exists(scene, `${PODS}/launcher-db`), false);
    assert.equal(scene.hypervisor().get(id), undefined);
    assert.equal(scene.volumes.calls.at(-1), 'release');
  });

  it('fails when the guest crashes', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.hypervisor().guest(id).crash('QEMU exited with code 1');
    await scene.settle();
    const { status } = await scene.pod('launcher-db');
    assert.equal(status.phase, 'Failed');
    assert.equal(status.reason, 'GuestCrashed');
    assert.match(status.message, /QEMU exited with code 1/);
  });

  it('fails when its guest has disappeared', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await scene.hypervisor().destroy(id);
    await scene.hypervisor().remove(id);
    await scene.restart();
    assert.equal((await scene.pod('launcher-db')).status.phase, 'Failed');
    assert.equal(scene.hypervisor().get(id), undefined);
  });
});

describe('a start that fails or waits', () => {
  it('waits for volumes, reports why, and continues when they are ready', async (t) => {
    const scene = await startAgentScene(t);
    const ready = scene.volumes.next;
    scene.volumes.next = { is: 'waiting', reason: 'ClaimPending', message: 'claim "data" is not bound' };
    const { id } = await scene.launch('db');
    await scene.advance(1);
    const { waiting } = (await scene.pod('launcher-db')).status.containerStatuses[0].state;
    assert.deepEqual(waiting, { reason: 'ClaimPending', message: 'claim "data" is not bound' });
    assert.equal(scene.hypervisor().get(id), undefined);
    scene.volumes.next = ready;
    await scene.advance(10);
    assert.equal((await scene.pod('launcher-db')).status.phase, 'Running');
  });

  it('fails permanently if a volume can never be ready', async (t) => {
    const scene = await startAgentScene(t);
    scene.volumes.next = { is: 'failed', reason: 'VolumeUnsupported', message: 'nfs cannot be used' };
    await scene.launch('db');
    const { phase, reason, message } = (await scene.pod('launcher-db')).status;
    assert.deepEqual(
      { phase, reason, message },
      { phase: 'Failed', reason: 'VolumeUnsupported', message: 'nfs cannot be used' },
    );
  });

  it('names the fields of an instance without a valid domain definition', async (t) => {
    const scene = await startAgentScene(t);
    await scene.launch('db', { domain: { memory: { guest: '128Mi' }, machine: { type: 'pc-q35-99' } } });
    const { phase, reason, message } = (await scene.pod('launcher-db')).status;
    assert.deepEqual([phase, reason], ['Failed', 'InvalidDefinition']);
    assert.match(message, /spec\.domain\.machine\.type/);
  });

  it('leaves out optional disks whose volumes are missing, with an Event', async (t) => {
    const scene = await startAgentScene(t);
    const missing = [{ name: 'extra', message: 'persistentvolumeclaim "extra" not found' }];
    scene.volumes.next = { is: 'ready', volumes: new Map(), missing };
    const { id } = await scene.launch('db', {
      domain: {
        memory: { guest: '128Mi' },
        machine: { type: 'q35' },
        devices: { disks: [{ name: 'extra', disk: { bus: 'virtio' }, optional: true }] },
      },
      volumes: [{ name: 'extra', persistentVolumeClaim: { claimName: 'extra' } }],
    });
    const { devices } = scene.hypervisor().inspect(id)!.definition;
    assert.deepEqual(
      devices.filter(({ type }) => type === 'disk'),
      [],
    );
    const { items } = await scene.api.ok('GET', '/api/v1/namespaces/default/events');
    const event = items.find(({ reason }: Loose) => reason === 'OptionalDiskMissing');
    assert.match(event.message, /"extra": persistentvolumeclaim "extra" not found/);
  });

  it('is tried again when the hypervisor fails, with an Event', async (t) => {
    const scene = await startAgentScene(t);
    scene.hypervisor().failNextCreate(new HypervisorError('Cannot start domain: no memory'));
    await scene.launch('db');
    await scene.advance(1);
    assert.equal((await scene.pod('launcher-db')).status.phase, 'Running');
    const { items } = await scene.api.ok('GET', '/api/v1/namespaces/default/events');
    assert.ok(items.some(({ reason, message }: Loose) => reason === 'StartFailed' && message.includes('no memory')));
  });

  it('fails at once if the hypervisor reports a permanent error', async (t) => {
    const scene = await startAgentScene(t);
    scene.hypervisor().failNextCreate(new HypervisorError('Cannot start domain: no such CPU', { permanent: true }));
    await scene.launch('db');
    assert.equal((await scene.pod('launcher-db')).status.reason, 'StartFailed');
  });

  it('does not happen twice for one instance, even with a second pod', async (t) => {
    const scene = await startAgentScene(t);
    const { vmi, id } = await scene.launch('db');
    await scene.api.ok('POST', PODS, { body: aLauncher(vmi, { name: 'forged' }) });
    await scene.settle();
    assert.equal((await scene.pod('forged')).status.reason, 'InstanceMismatch');
    assert.equal((await scene.pod('launcher-db')).status.phase, 'Running');
    await stop(scene, 'forged');
    await scene.settle();
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
  });

  it('does not happen for a pod that names the instance of another pod', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    const { vmi } = await scene.launch('victim');
    const forged = aLauncher(vmi, { name: 'forged' });
    forged.metadata.annotations['kubevirt.io/domain'] = 'db';
    delete forged.metadata.ownerReferences;
    await scene.api.ok('POST', PODS, { body: forged });
    await scene.settle();
    assert.equal((await scene.pod('forged')).status.reason, 'InstanceMismatch');
    await stop(scene, 'forged');
    await scene.settle();
    assert.equal(await exists(scene, `${PODS}/forged`), false);
    for (const uid of [id, vmi.metadata.uid]) assert.equal(scene.hypervisor().get(uid)?.current.state, 'running');
  });
});

describe('a pod that is deleted', () => {
  it('is removed when its guest has shut down', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await stop(scene, 'launcher-db');
    await scene.settle();
    assert.equal(await exists(scene, `${PODS}/launcher-db`), false);
    assert.equal(scene.hypervisor().get(id), undefined);
  });

  it('is resumed first if it was paused', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db', { startStrategy: 'Paused' });
    await stop(scene, 'launcher-db');
    await scene.settle();
    assert.equal(scene.hypervisor().get(id), undefined);
  });

  it('is switched off when the grace period is over, and not before', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.hypervisor().guest(id).ignorePowerButton();
    await stop(scene, 'launcher-db');
    await scene.settle();
    await scene.advance(59);
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
    await scene.advance(2);
    assert.equal(scene.hypervisor().get(id), undefined);
    assert.equal(await exists(scene, `${PODS}/launcher-db`), false);
  });

  it('is switched off at once when the grace period is set to 0', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.hypervisor().guest(id).ignorePowerButton();
    await stop(scene, 'launcher-db');
    await scene.settle();
    await scene.api.ok('PATCH', `${VMIS}/db`, { body: { spec: { terminationGracePeriodSeconds: 0 } } });
    await scene.settle();
    assert.equal(scene.hypervisor().get(id), undefined);
  });

  it('by force is removed at once, and its guest with it', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await scene.api.ok('DELETE', `${PODS}/launcher-db`, { body: { gracePeriodSeconds: 0 } });
    await scene.settle();
    assert.equal(scene.hypervisor().get(id), undefined);
  });
});

describe('a restarted agent', () => {
  it('finds its guests and changes nothing', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    const before = scene.hypervisor().get(id)?.startedAtMs;
    await scene.clock.advance(5000);
    scene.writes.length = 0;
    await scene.restart();
    assert.equal(scene.hypervisor().get(id)?.startedAtMs, before);
    assert.deepEqual(
      scene.writes.filter((write) => /pods|virtualmachineinstances|events/.test(write)),
      [],
    );
  });

  it('removes guests that no longer have a pod', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await scene.agent().stop();
    await scene.api.ok('DELETE', `${PODS}/launcher-db`, { body: { gracePeriodSeconds: 0 } });
    await scene.restart();
    assert.equal(scene.hypervisor().get(id), undefined);
  });

  it('waits for the API, and changes no guest before it has listed all pods', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await scene.agent().stop();
    const stopping = new AbortController();
    const hypervisor = createFakeHypervisor({ clock: scene.clock, host: scene.hypervisor().host });
    const handler = () => Promise.reject(new Error('the API does not answer'));
    const user = { name: `system:node:${NODE}`, groups: [] };
    const starting = startNodeAgent({
      name: NODE,
      client: createClient(createInProcessTransport({ handler, user, userAgent: 'agent' })),
      hypervisor,
      volumes: scene.volumes,
      guest: undefined,
      endpoint: undefined,
      sandboxed: false,
      clock: scene.clock,
      log: silentLog,
      signal: stopping.signal,
    });
    const outcome = starting.then(
      () => 'started',
      () => 'given up',
    );
    await scene.clock.advance(600_000);
    assert.equal(hypervisor.get(id)?.current.state, 'running');
    stopping.abort();
    assert.equal(await outcome, 'given up');
    assert.equal(hypervisor.get(id)?.current.state, 'running');
  });

  it('continues a stop with the full grace period', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.hypervisor().guest(id).ignorePowerButton();
    await scene.agent().stop();
    await stop(scene, 'launcher-db');
    await scene.clock.advance(100_000);
    await scene.restart();
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
    await scene.advance(61);
    assert.equal(scene.hypervisor().get(id), undefined);
    assert.equal(await exists(scene, `${PODS}/launcher-db`), false);
  });
});

/** More writes than a run has. */
const MAX_WRITES = 30;

describe('an agent that is killed', () => {
  it('can be replaced after any write of a start and a stop', async (t) => {
    let total = MAX_WRITES;
    for (let cut = 0; cut <= total; cut++) {
      await t.test(`${cut} writes`, async (inner) => {
        const scene = await startAgentScene(inner);
        scene.writes.length = 0;
        scene.cutAfter(cut);
        const { id } = await scene.launch('db');
        if (scene.writes.length === cut) await scene.restart();
        assert.equal((await scene.pod('launcher-db')).status.phase, 'Running');
        assert.match((await scene.vmi('db')).status.deviceHash, /^[0-9a-f]{64}$/);
        await stop(scene, 'launcher-db');
        await scene.settle();
        if (scene.writes.length === cut) await scene.restart();
        assert.equal(await exists(scene, `${PODS}/launcher-db`), false);
        assert.equal(scene.hypervisor().get(id), undefined);
        assert.deepEqual(scene.starts, ['default/db']);
        if (scene.writes.length < cut) total = scene.writes.length;
      });
    }
    assert.ok(total < MAX_WRITES, 'the agent was killed at every write');
  });
});
