/** Hotplug by the node agent: with the API server in process, on simulated guests. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HostVm } from '#api/host-api.ts';
import { newUid } from '#lib/ids.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { CLAIMS, startAgentScene, VMIS, VOLUMES, type AgentScene } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const MAC = '02:00:00:00:00:0';

/** Interfaces by name; `-b` is an absent interface b. */
function nics(...names: string[]): Loose {
  const listed = names.map((name) => name.replace(/^-/, ''));
  return {
    interfaces: names.map((name, i) => ({
      name: listed[i],
      masquerade: {},
      macAddress: `${MAC}${i + 1}`,
      ...(name.startsWith('-') ? { state: 'absent' } : {}),
    })),
    networks: listed.map((name) => ({ name, pod: {} })),
  };
}

interface GuestSpec {
  /** `default` unless set. */
  readonly nics?: readonly string[];
  /** Claims by the name of the volume, on scsi. */
  readonly claims?: Readonly<Record<string, string>>;
}

function spec({ nics: names = ['default'], claims = {} }: GuestSpec): Loose {
  const { interfaces, networks } = nics(...names);
  return {
    domain: {
      devices: { interfaces, disks: Object.keys(claims).map((name) => ({ name, disk: { bus: 'scsi' } })) },
    },
    networks,
    volumes: Object.entries(claims).map(([name, claimName]) => ({
      name,
      persistentVolumeClaim: { claimName, hotpluggable: true },
    })),
  };
}

async function applySpec({ api, volumes }: AgentScene, guestSpec: GuestSpec): Promise<void> {
  for (const [name, claim] of Object.entries(guestSpec.claims ?? {})) {
    volumes.media.set(name, { source: { path: `/simulated/${claim}`, format: 'raw' }, readonly: false });
  }
  await api.ok('PATCH', `${VMIS}/db`, { body: { spec: spec(guestSpec) } });
}

/** Returns the disks and NICs of the guest: `nic-b`, `disk-data on claim-a`. */
function devicesOf(scene: AgentScene, id: string): string[] {
  const { devices } = scene.hypervisor().inspect(id)!.definition;
  return devices.flatMap((device) => {
    if (device.type === 'interface') return [device.id];
    return device.type === 'disk' ? [`${device.id} on ${device.source?.path.replace('/simulated/', '')}`] : [];
  });
}

/** Returns the reported hotplugs and the pending condition: `disk-data Ready`, `pending: reason`. */
async function readReported(scene: AgentScene): Promise<string[]> {
  const { status } = await scene.vmi('db');
  const condition = status.conditions.find(({ type }: Loose) => type === 'DeviceChangePending');
  return [
    ...(status.hotplug ?? []).map(({ device, phase }: Loose) => `${device} ${phase}`),
    ...(condition === undefined ? [] : [`pending: ${condition.reason}`]),
  ];
}

/** Returns hash and revision of the status, which must be those of `list`. */
async function readReading(scene: AgentScene): Promise<{ hash: string; revision: number; ids: string[] }> {
  const { status } = await scene.vmi('db');
  const options = { signal: new AbortController().signal };
  const { vmList = [] } = await scene.agent().host!.call('list', { fullStatus: true }, options);
  const { hash, deviceRevision, devices } = vmList[0] as HostVm;
  assert.deepEqual([hash, deviceRevision], [status.deviceHash, status.deviceRevision]);
  return { hash: hash!, revision: deviceRevision!, ids: devices.map(({ deviceId }) => deviceId!) };
}

const steps = (scene: AgentScene) => scene.writes.filter((write) => /^(?:un)?plug|^releaseVolume/.test(write));

describe('an interface', () => {
  it('is plugged and unplugged with the spec, and reported in the status', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    const before = await readReading(scene);
    await scene.clock.advance(1000);
    await applySpec(scene, { nics: ['default', 'b'] });
    await scene.settle();
    assert.deepEqual(devicesOf(scene, id), ['nic-default', 'nic-b']);
    assert.deepEqual(await readReported(scene), ['nic-b Ready']);
    const { status } = await scene.vmi('db');
    assert.deepEqual(
      status.interfaces.map(({ name, mac }: Loose) => [name, mac]),
      [
        ['default', `${MAC}1`],
        ['b', `${MAC}2`],
      ],
    );
    const plugged = await readReading(scene);
    assert.ok(plugged.hash !== before.hash && plugged.revision > before.revision && plugged.ids.includes('nic-b'));

    await applySpec(scene, { nics: ['default', '-b'] });
    await scene.settle();
    assert.deepEqual(devicesOf(scene, id), ['nic-default']);
    assert.deepEqual(await readReported(scene), []);
    const unplugged = await readReading(scene);
    assert.equal(unplugged.hash, before.hash);
    assert.ok(unplugged.revision > plugged.revision, 'the revision increases even if the devices are those of before');
  });

  it('with a boot order is not unplugged', async (t) => {
    const scene = await startAgentScene(t);
    const { interfaces, networks } = nics('default', 'b');
    interfaces[1].bootOrder = 1;
    const { id } = await scene.launch('db', {
      domain: { memory: { guest: '128Mi' }, machine: { type: 'q35' }, devices: { interfaces } },
      networks,
    });
    await applySpec(scene, {});
    await scene.settle();
    assert.deepEqual(devicesOf(scene, id), ['nic-default', 'nic-b']);
    assert.deepEqual(steps(scene), []);
  });
});

describe('a volume', () => {
  it('is plugged in when it is ready, and released when the guest has released the disk', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    const ready = scene.volumes.next;
    scene.volumes.next = { is: 'waiting', reason: 'VolumeNotBound', message: 'claim "a" is not bound' };
    await applySpec(scene, { claims: { data: 'a' } });
    await scene.settle();
    assert.deepEqual(await readReported(scene), ['disk-data Plugging', 'pending: VolumeNotBound']);
    assert.deepEqual(devicesOf(scene, id), ['nic-default']);
    scene.volumes.next = ready;
    await scene.advance(10);
    assert.deepEqual(await readReported(scene), ['disk-data Ready']);
    assert.deepEqual(devicesOf(scene, id), ['nic-default', 'disk-data on a']);

    await applySpec(scene, {});
    await scene.settle();
    assert.deepEqual(await readReported(scene), []);
    assert.deepEqual(devicesOf(scene, id), ['nic-default']);
    assert.deepEqual(steps(scene), ['plug disk-data', 'unplug disk-data', 'releaseVolume data']);
  });

  it('that the guest does not release is requested every 30 seconds, and removed when it is released', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await applySpec(scene, { nics: ['default', 'b'] });
    await scene.settle();
    scene.hypervisor().guest(id).holdDevices();
    await applySpec(scene, {});
    await scene.settle();
    assert.deepEqual(await readReported(scene), ['nic-b Unplugging', 'pending: WaitingForGuest']);
    await scene.advance(65);
    assert.deepEqual(steps(scene), ['plug nic-b', 'unplug nic-b', 'unplug nic-b', 'unplug nic-b']);
    scene.hypervisor().guest(id).releaseDevices();
    await scene.settle();
    assert.deepEqual(await readReported(scene), []);
    assert.equal((await readReading(scene)).ids.includes('nic-b'), false);
  });

  it('with another claim under the same name is plugged in after the first is unplugged', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await applySpec(scene, { claims: { data: 'a' } });
    await scene.settle();
    await applySpec(scene, { claims: { data: 'b' } });
    await scene.settle();
    assert.deepEqual(devicesOf(scene, id), ['nic-default', 'disk-data on b']);
    assert.deepEqual(await readReported(scene), ['disk-data Ready']);
    assert.deepEqual(steps(scene), ['plug disk-data', 'unplug disk-data', 'releaseVolume data', 'plug disk-data']);
  });

  it('whose claim changed while the agent was stopped is replaced', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await applySpec(scene, { claims: { data: 'a', log: 'l' } });
    await scene.settle();
    await scene.agent().stop();
    scene.writes.length = 0;
    await applySpec(scene, { claims: { data: 'b', log: 'l' } });
    await scene.restart();
    assert.deepEqual(devicesOf(scene, id), ['nic-default', 'disk-log on l', 'disk-data on b']);
    assert.deepEqual(steps(scene), ['unplug disk-data', 'releaseVolume data', 'plug disk-data']);
  });

  it('that cannot be plugged in is reported as failed, with an Event, and tried again', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.hypervisor().failNextPlug(new HypervisorError('Cannot plug: no such bus', { permanent: true }));
    await applySpec(scene, { claims: { data: 'a' } });
    await scene.settle();
    assert.deepEqual(await readReported(scene), ['disk-data Failed', 'pending: PlugFailed']);
    const { items } = await scene.api.ok('GET', '/api/v1/namespaces/default/events');
    assert.ok(items.some(({ reason, message }: Loose) => reason === 'PlugFailed' && message.includes('no such bus')));
    await scene.advance(31);
    assert.deepEqual(await readReported(scene), ['disk-data Ready']);
    assert.deepEqual(devicesOf(scene, id), ['nic-default', 'disk-data on a']);
  });

  it('that failed is released when the spec names another claim', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.hypervisor().failNextPlug(new HypervisorError('Cannot plug: no such bus', { permanent: true }));
    await applySpec(scene, { claims: { data: 'a' } });
    await scene.settle();
    scene.writes.length = 0;
    await applySpec(scene, { claims: { data: 'b' } });
    await scene.settle();
    assert.deepEqual(steps(scene), ['releaseVolume data', 'plug disk-data']);
    assert.deepEqual(devicesOf(scene, id), ['nic-default', 'disk-data on b']);
    assert.deepEqual(await readReported(scene), ['disk-data Ready']);
  });

  it('that failed is released when the spec no longer has it', async (t) => {
    const scene = await startAgentScene(t);
    await scene.launch('db');
    scene.hypervisor().failNextPlug(new HypervisorError('Cannot plug: no such bus', { permanent: true }));
    await applySpec(scene, { claims: { data: 'a' } });
    await scene.settle();
    await applySpec(scene, {});
    await scene.settle();
    assert.deepEqual(await readReported(scene), []);
    assert.deepEqual(steps(scene), ['plug disk-data', 'releaseVolume data']);
  });
});

/** Makes a claim for 1Gi on a volume of 2Gi. */
async function growClaim({ api }: AgentScene, name: string): Promise<void> {
  const [accessModes, storageClassName] = [['ReadWriteOnce'], 'local'];
  const spec = { accessModes, storageClassName, volumeName: 'pv', resources: { requests: { storage: '1Gi' } } };
  const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec };
  const { metadata } = await api.ok('POST', CLAIMS, { body });
  const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
  await api.ok('PATCH', `${CLAIMS}/${name}/status`, { body: { status } });
  const claimRef = { namespace: 'default', name, uid: metadata.uid };
  const csi = { driver: 'local.selfsame.io', volumeHandle: 'pv' };
  const volume = { capacity: { storage: '2Gi' }, accessModes, storageClassName, claimRef, csi };
  await api.ok('POST', VOLUMES, {
    body: { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' }, spec: volume },
  });
}

describe('a volume that was plugged in', () => {
  it('is resized while the guest runs, although its pod does not name it', async (t) => {
    const scene = await startAgentScene(t);
    await scene.launch('db');
    await applySpec(scene, { claims: { data: 'a' } });
    await scene.settle();
    const resized: string[] = [];
    scene.hypervisor().resizeDisk = async (_, disk) => void resized.push(disk);
    await growClaim(scene, 'a');
    await scene.settle();
    assert.deepEqual(resized, ['disk-data']);
    assert.equal((await scene.api.ok('GET', `${CLAIMS}/a`)).status.capacity.storage, '2Gi');
  });
});

describe('devices', () => {
  it('of unchanged guests are neither read nor reported, and need no timer', async (t) => {
    const scene = await startAgentScene(t);
    const before = scene.clock.pendingTimers;
    const { id } = await scene.launch('db');
    assert.deepEqual(scene.learned, [id]);
    await scene.advance(60);
    assert.ok(scene.clock.pendingTimers <= before, 'a running guest needs no timer');
    assert.deepEqual(scene.learned, [id]);
    scene.writes.length = 0;
    await scene.restart();
    assert.deepEqual(scene.learned, [id, id]);
    assert.deepEqual(
      scene.writes.filter((write) => write.includes(VMIS)),
      [],
    );
  });

  it('that cannot be read are read again, and the guest is reported meanwhile', async (t) => {
    const scene = await startAgentScene(t);
    scene.learnErrors.push(new HypervisorError('no answer'), new HypervisorError('no answer'));
    await scene.launch('db');
    const { status } = await scene.vmi('db');
    assert.deepEqual([status.machine.type.startsWith('pc-q35'), 'deviceHash' in status], [true, false]);
    await scene.advance(1);
    assert.match((await readReading(scene)).hash, /^[0-9a-f]{64}$/);
    assert.equal(scene.learned.length, 3);
  });

  it('of a guest of the host API are read, and the guest is not changed', async (t) => {
    const scene = await startAgentScene(t);
    const definition = aDefinition({ id: newUid(), name: 'of the host', origin: 'host-api' });
    await scene.hypervisor().create(definition, { paused: false });
    await scene.settle();
    await scene.restart();
    assert.equal(scene.hypervisor().get(definition.id)?.current.state, 'running');
    assert.deepEqual(scene.learned, [definition.id, definition.id]);
    const options = { signal: new AbortController().signal };
    const { statsList } = await scene.agent().host!.call('getAllVmStats', {}, options);
    assert.deepEqual(
      statsList?.map(({ vmId, status, hash }) => [vmId, status, hash?.length]),
      [[definition.id, 'Up', 64]],
    );
  });
});

/** More steps than a run has. */
const MAX_STEPS = 40;

describe('an agent that is killed during hotplugs', () => {
  it('can be replaced after any step by one that completes them', async (t) => {
    let total = MAX_STEPS;
    for (let cut = 0; cut <= total; cut++) {
      await t.test(`${cut} steps`, async (inner) => {
        const scene = await startAgentScene(inner);
        const { id } = await scene.launch('db');
        scene.writes.length = 0;
        scene.cutAfter(cut);
        const settleAndRestart = async () => {
          await scene.settle();
          if (scene.writes.length === cut) await scene.restart();
        };
        await applySpec(scene, { nics: ['default', 'b'], claims: { data: 'a' } });
        await settleAndRestart();
        assert.deepEqual(devicesOf(scene, id).sort(), ['disk-data on a', 'nic-b', 'nic-default']);
        await applySpec(scene, { claims: { data: 'b' } });
        await settleAndRestart();
        assert.deepEqual(devicesOf(scene, id).sort(), ['disk-data on b', 'nic-default']);
        await applySpec(scene, {});
        await settleAndRestart();
        assert.deepEqual(devicesOf(scene, id), ['nic-default']);
        assert.deepEqual(await readReported(scene), []);
        assert.equal((await readReading(scene)).ids.includes('disk-data'), false);
        // Both volumes were released, by either agent.
        const released = scene.writes.filter((write) => write === 'releaseVolume data').length;
        assert.ok(released >= 2, `released ${released} times`);
        if (scene.writes.length < cut) total = scene.writes.length;
      });
    }
    assert.ok(total < MAX_STEPS, 'the agent was killed at every step');
  });
});
