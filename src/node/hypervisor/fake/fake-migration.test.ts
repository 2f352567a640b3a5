/** Tests what can be observed of migrating simulated guests, beyond the conformance suite. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { newUid } from '#lib/ids.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration, MovingDisk, OutgoingMigration, TransferredState } from '#node/hypervisor/migration.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { assertRunsOnOneHost } from '#node/hypervisor/fake/fake-endpoints.ts';
import type { FakeHost } from '#node/hypervisor/fake/fake-host.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';

const EFI: DomainDefinition['firmware'] = {
  uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223',
  loader: { type: 'efi', secureBoot: false, persistent: true },
};
const DEFINITION = aDefinition({ firmware: EFI, state: { directory: '/state/a' } });
const REFUSED = new HypervisorError('injected failure');

describe('a migrating simulated guest', () => {
  it('moves with its memory, including changes during the send', async () => {
    const scene = await aScene();
    const { source, target, id } = scene;
    source.host.holdSends = true;
    source.guest(id).setMemory('early', '1');
    const sending = scene.send();
    source.guest(id).setMemory('late', '2');
    source.host.finishSends();
    await sending;
    await scene.arrive(await source.switchOver(id));

    assert.deepEqual(
      ['early', 'late'].map((key) => target.guest(id).getMemory(key)),
      ['1', '2'],
    );
    assert.equal(target.guest(id).getMemory('never'), undefined);
  });

  it('moves its persistent state to the target, and writes only there afterwards', async () => {
    const scene = await aScene();
    const { source, target, id } = scene;
    source.guest(id).writeState('tpm', 'secret');
    source.guest(id).writeState('efi/BootOrder', '0001');
    await scene.send();
    const sent = await source.switchOver(id);
    assert.ok(sent.nvram?.includes('BootOrder') === true && !sent.nvram.includes('tpm'));
    assert.equal(target.host.states.read('/state/b').size, 0);
    await scene.arrive(sent);
    target.guest(id).writeState('tpm', 'newer');

    assert.deepEqual(
      [target.guest(id).readState('tpm'), target.guest(id).readState('efi/BootOrder')],
      ['newer', '0001'],
    );
    assert.equal(source.host.states.read('/state/a').get('tpm'), 'secret');
  });

  it('does not boot again', async () => {
    const scene = await aScene();
    const { source, target, id } = scene;
    await scene.send();
    await scene.arrive(await source.switchOver(id));
    await target.pause(id);
    await target.resume(id);
    assert.equal((await target.readConsoleLog(id)).toString(), '');
    assert.throws(() => source.guest(id).setMemory('a', 'b'), /only a running guest acts/);
  });

  it('boots on the target if it never ran before', async () => {
    const scene = await aScene({ paused: true });
    const { source, target, id } = scene;
    await scene.send();
    await scene.arrive(await source.switchOver(id));
    await target.resume(id);
    assert.match((await target.readConsoleLog(id)).toString(), /^Simulated guest/);
  });

  it('loses its memory on a restart', async () => {
    const { source, id } = await aScene();
    source.guest(id).setMemory('a', '1');
    source.guest(id).writeState('b', '2');
    await source.reset(id);
    assert.deepEqual([source.guest(id).getMemory('a'), source.guest(id).readState('b')], [undefined, '2']);
  });

  it('acts on the target on a power button pressed during the switchover', async () => {
    const scene = await aScene();
    const { source, target, id } = scene;
    await scene.send();
    await source.powerDown(id);
    await scene.arrive(await source.switchOver(id));
    assert.deepEqual(target.get(id)?.current, { state: 'ended', how: 'shutdown' });
  });

  it('moves the content of its moving disks', async () => {
    const disks = ['first', 'second'].map((name, i) => aDisk(name, 2 + i, { path: `/a/${name}`, format: 'raw' }));
    const scene = await aScene({
      definition: { ...DEFINITION, devices: [...DEFINITION.devices, ...disks] },
      moving: [{ deviceId: 'disk-first', bytes: 1, overlay: false }],
    });
    const { source, target, id } = scene;
    const [from, to] = [textsOf(source.host), textsOf(target.host)];
    from.set('/a/first', 'one').set('/a/second', 'two');
    await scene.send();
    await scene.arrive(await source.switchOver(id));
    assert.deepEqual([...to], [['/b/first', 'one']]);
  });

  const failures: Record<string, (scene: Scene) => Promise<unknown>> = {
    'the target fails to receive': async ({ target, incoming }) => {
      target.failNextReceive(REFUSED);
      await target.receive(aDefinition(), incoming, {});
    },
    'the source fails to send': async ({ source, send }) => {
      source.failNextSend(REFUSED);
      await send();
    },
    'the target fails to store': async ({ source, target, send, id }) => {
      target.failNextStore(REFUSED);
      await send();
      await target.store(id, await source.switchOver(id), {});
    },
    'the EFI variables are missing': async ({ source, target, send, id }) => {
      await send();
      await source.switchOver(id);
      await target.store(id, {}, {});
    },
    'no data has arrived': async ({ target, id }) => target.store(id, {}, {}),
    'the guest was not sent completely': async ({ source, send, id }) => {
      await send();
      await source.recordMigrated(id);
    },
    'the target expects another machine': async () => {
      const other = await aScene({ change: { memoryKib: 32 * 1024 } });
      await other.send();
      await other.target.store(other.id, await other.source.switchOver(other.id), {});
    },
    'the target has no such disk': async ({ target, incoming }) => {
      const disks = [{ deviceId: 'disk-none', bytes: 1, overlay: false }];
      await target.receive(aDefinition(), { ...incoming, disks }, {});
    },
  };
  for (const [why, run] of Object.entries(failures)) {
    it(`continues at the source if ${why}`, async () => {
      const scene = await aScene();
      await assert.rejects(run(scene), HypervisorError);
      await scene.source.abortMigration(scene.id);
      assert.deepEqual(scene.source.get(scene.id)?.current, { state: 'running' });
      assert.deepEqual(scene.target.get(scene.id)?.current, { state: 'incoming' });
    });
  }

  const cuts = ['sending', 'stored', 'migrated', 'committed', 'arrived', 'left'] as const;
  for (const inFiles of [false, true]) {
    for (const cut of cuts) {
      it(`survives a kill after step ${cut}, with a host ${inFiles ? 'in files' : 'in memory'}`, async () => {
        const dir = inFiles ? mkdtempSync(join(tmpdir(), 'fake-migration-')) : undefined;
        try {
          const scene = await aScene(dir === undefined ? {} : { dir });
          const { id } = scene;
          scene.source.guest(id).setMemory('a', '1');
          scene.source.guest(id).writeState('tpm', '2');
          const dies = (_: string, step: string) => {
            if (step === cut) throw new Error('killed');
          };
          scene.source.host.onStep = dies;
          scene.target.host.onStep = dies;
          await assert.rejects(scene.all(), /killed/);

          const [source, target] = [await scene.reopen('source'), await scene.reopen('target')];
          source.host.onStep = undefined;
          target.host.onStep = undefined;
          const hasMigrated = cut !== 'sending' && cut !== 'stored';
          if (hasMigrated) {
            await target.commit(id);
            await source.leave(id);
          } else {
            await source.abortMigration(id);
            await target.destroy(id);
          }

          const [stays, goes] = hasMigrated ? [target, source] : [source, target];
          assert.deepEqual(stays.get(id)?.current, { state: 'running' });
          assert.deepEqual([stays.guest(id).getMemory('a'), stays.guest(id).readState('tpm')], ['1', '2']);
          assert.equal(goes.get(id)?.current.state, 'ended');
        } finally {
          if (dir !== undefined) rmSync(dir, { recursive: true });
        }
      });
    }
  }

  it('continues by itself if the target had committed', async () => {
    const scene = await aScene();
    scene.target.host.onStep = (_, step) => {
      if (step === 'committed') throw new Error('killed');
    };
    await assert.rejects(scene.all(), /killed/);
    assert.deepEqual(scene.target.get(scene.id)?.current, { state: 'incoming' });

    const target = await scene.reopen('target');

    assert.deepEqual(target.get(scene.id)?.current, { state: 'running' });
    assert.equal(target.get(scene.id)?.migration?.step, 'arrived');
  });

  it('belongs to the target once committed, even if it has ended', async () => {
    const scene = await aScene();
    const { source, target, id } = scene;
    await scene.send();
    await target.store(id, await source.switchOver(id), {});
    await source.recordMigrated(id);
    target.guest(id).crash('killed');
    await assert.rejects(target.commit(id), HypervisorError);
    assert.equal(target.get(id)?.migration?.step, 'committed');
    assert.equal(target.get(id)?.current.state, 'ended');
  });

  it('fails an invariant if the guest would run on both hosts', async () => {
    const scene = await aScene();
    const { source, target, id } = scene;
    await scene.send();
    await target.store(id, await source.switchOver(id), {});
    await source.abortMigration(id);
    await assert.rejects(target.commit(id), /a guest runs on one host at a time/);
  });

  it('closes its endpoint, and endpoints without a record', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'fake-migration-'));
    const directory = join(dir, 'target', 'doors');
    try {
      const scene = await aScene({ dir });
      assert.equal(readdirSync(directory).length, 1);
      mkdirSync(join(directory, 'door-bcdfghjklmnpqrst'));
      const target = await scene.reopen('target');
      assert.equal(readdirSync(directory).length, 1);
      await target.destroy(scene.id);
      assert.equal(readdirSync(directory).length, 0);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('refuses an endpoint that no host opened', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'fake-migration-'));
    try {
      const scene = await aScene();
      const { source, id, outgoing } = scene;
      const forged: OutgoingMigration = { ...outgoing, endpoint: { memory: dir } };
      await assert.rejects(source.send(id, forged, { signal: new AbortController().signal }), HypervisorError);
      assert.ok(existsSync(dir));
      assert.deepEqual(readdirSync(dir), []);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

it('asserts that the guest of an endpoint runs on one host at a time', () => {
  const endpoint = newUid();
  assertRunsOnOneHost(endpoint, 'a', true);
  assertRunsOnOneHost(endpoint, 'a', true);
  assertRunsOnOneHost(endpoint, 'b', false);
  assert.throws(() => assertRunsOnOneHost(endpoint, 'b', true));
  assertRunsOnOneHost(endpoint, 'a', false);
  assertRunsOnOneHost(endpoint, 'b', true);
  assert.throws(() => assertRunsOnOneHost(endpoint, 'a', true));
});

interface SceneOptions {
  readonly definition?: DomainDefinition;
  /** Changes of the definition at the target. */
  readonly change?: Partial<DomainDefinition>;
  readonly moving?: readonly MovingDisk[];
  readonly dir?: string;
  readonly paused?: boolean;
}

type Scene = Awaited<ReturnType<typeof aScene>>;

/** A guest that runs at the source, and a target that waits for it. */
async function aScene({ definition = DEFINITION, change, moving = [], dir, paused = false }: SceneOptions = {}) {
  const own = { ...definition, id: newUid() };
  const { id } = own;
  const opened = { source: await open(dir && join(dir, 'source')), target: await open(dir && join(dir, 'target')) };
  const { source, target } = opened;
  await source.create(own, { paused });
  const reach: IncomingMigration['transport'] = { type: 'network', host: '127.0.0.1' };
  const incoming: IncomingMigration = {
    uid: newUid(),
    peer: 'a',
    startedAtMs: 0,
    paused,
    disks: moving,
    transport: reach,
  };
  const endpoint = await target.receive({ ...retargeted(own), ...change }, incoming, {});
  const outgoing: OutgoingMigration = {
    ...{ uid: incoming.uid, peer: 'b', endpoint, disks: moving },
    ...{ bytesPerSecond: 0, autoConverge: false },
  };
  const send = () => source.send(id, outgoing, { signal: new AbortController().signal });
  const arrive = async (sent: TransferredState) => {
    await target.store(id, sent, {});
    await source.recordMigrated(id);
    await target.commit(id);
    await source.leave(id);
  };
  return {
    ...{ source, target, id, incoming, outgoing, send, arrive },
    async all() {
      await send();
      await arrive(await source.switchOver(id));
    },
    /** Opens the next hypervisor on the same files or the same host. */
    reopen: (which: 'source' | 'target') =>
      open(dir && join(dir, which), dir === undefined ? opened[which].host : undefined),
  };
}

async function open(dir: string | undefined, host?: FakeHost): Promise<FakeHypervisor> {
  const place = { ...(dir !== undefined && { dir }), ...(host !== undefined && { host }) };
  const hypervisor = createFakeHypervisor({ clock: new FakeClock(), ...place });
  await hypervisor.adopt();
  return hypervisor;
}

function retargeted(definition: DomainDefinition): DomainDefinition {
  const devices = definition.devices.map((device) =>
    device.type === 'disk' && device.source !== undefined
      ? { ...device, source: { ...device.source, path: device.source.path.replace('/a/', '/b/') } }
      : device,
  );
  return { ...definition, devices, state: { directory: '/state/b' } };
}

function textsOf(host: FakeHost): Map<string, string> {
  const texts = new Map<string, string>();
  host.disks = { readDisk: (path) => texts.get(path), writeDisk: (path, text) => void texts.set(path, text) };
  return texts;
}
