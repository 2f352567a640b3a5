import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { hypervisorConformance, type ConformanceScene } from '#node/hypervisor/testing/conformance.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { FakeHost } from '#node/hypervisor/fake/fake-host.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';

async function inMemory(): Promise<ConformanceScene> {
  const hosts = [new FakeHost(), new FakeHost()] as const;
  return sceneOf((at) => createFakeHypervisor({ clock: new FakeClock(), host: hosts[at] }));
}

async function inFiles(): Promise<ConformanceScene> {
  const dir = mkdtempSync(join(tmpdir(), 'fake-hypervisor-'));
  const scene = await sceneOf((at) => createFakeHypervisor({ clock: new FakeClock(), dir: join(dir, `${at}`) }));
  return { ...scene, end: async () => rmSync(dir, { recursive: true }) };
}

async function ignoringPowerButton(): Promise<ConformanceScene> {
  const scene = await inMemory();
  const hypervisor = scene.hypervisor as FakeHypervisor;
  const create = hypervisor.create.bind(hypervisor);
  hypervisor.create = async (definition, options) => {
    await create(definition, options);
    hypervisor.guest(definition.id).ignorePowerButton();
  };
  return { ...scene, shutsDownOnPowerButton: false };
}

/** Opens the hypervisor of the scene (0) or the second one (1). */
async function sceneOf(open: (at: 0 | 1) => FakeHypervisor): Promise<ConformanceScene> {
  const last: FakeHypervisor[] = [];
  const opened = (at: 0 | 1) => (last[at] = open(at));
  const hypervisor = opened(0);
  await hypervisor.adopt();
  let copies = 0;
  let disks = 0;
  return {
    hypervisor,
    async reopen(meanwhile) {
      await meanwhile?.();
      return opened(0);
    },
    async reopenSlow() {
      const next = opened(0);
      next.host.holdCopies = true;
      next.host.holdSends = true;
      return next;
    },
    async second() {
      if (last[1] === undefined) await opened(1).adopt();
      return last[1] as FakeHypervisor;
    },
    reopenSecond: async () => opened(1),
    killAtSecond: async (id) => last[1]?.host.guest(id)?.crash('killed'),
    definition: (overrides?: Partial<DomainDefinition>) => aDefinition(overrides),
    definitionWithDisks: async () => definitionWithDisks(),
    diskFile: async () => `/disks/${disks++}.img`,
    copyFile: async () => `/copies/${copies++}`,
    killGuest: async (id) => last[0]?.host.guest(id)?.crash('killed'),
    shutsDownOnPowerButton: true,
    echoesInput: true,
    end: async () => undefined,
  };
}

function definitionWithDisks(): DomainDefinition {
  const { devices } = aDefinition();
  const disks = ['first', 'second'].map((name, i) => aDisk(name, 2 + i, { path: `/disks/${name}`, format: 'raw' }));
  return aDefinition({ devices: [...devices, ...disks] });
}

hypervisorConformance('fake in memory', inMemory);
hypervisorConformance('fake in files', inFiles);
hypervisorConformance('fake with stubborn guests', ignoringPowerButton);

describe('fake hypervisor', () => {
  async function aGuest() {
    const hypervisor = createFakeHypervisor({ clock: new FakeClock() });
    await hypervisor.adopt();
    const definition = aDefinition();
    await hypervisor.create(definition);
    return { hypervisor, definition, id: definition.id };
  }

  it('lets a guest shut down by itself', async () => {
    const { hypervisor, id } = await aGuest();
    hypervisor.guest(id).shutDown();
    assert.deepEqual(hypervisor.get(id)?.current, { state: 'ended', how: 'shutdown' });
  });

  it('lets a guest crash with its message', async () => {
    const { hypervisor, id } = await aGuest();
    hypervisor.guest(id).crash('kernel panic');
    assert.deepEqual(hypervisor.get(id)?.current, { state: 'ended', how: 'crashed', message: 'kernel panic' });
  });

  it('acts on the power button only when the guest resumes', async () => {
    const { hypervisor, id } = await aGuest();
    await hypervisor.pause(id);
    await hypervisor.powerDown(id);
    assert.deepEqual(hypervisor.get(id)?.current, { state: 'paused' });

    await hypervisor.resume(id);
    assert.deepEqual(hypervisor.get(id)?.current, { state: 'ended', how: 'shutdown' });
  });

  it('prints the UUID at each boot, and not before the guest runs', async () => {
    const { hypervisor, definition, id } = await aGuest();
    await hypervisor.reset(id);
    const log = String(await hypervisor.readConsoleLog(id));
    assert.equal(log.split(`uuid ${definition.firmware.uuid}`).length - 1, 2);

    const prepared = aDefinition();
    await hypervisor.create(prepared, { paused: true });
    assert.equal(String(await hypervisor.readConsoleLog(prepared.id)), '');
    await hypervisor.resume(prepared.id);
    assert.match(String(await hypervisor.readConsoleLog(prepared.id)), /uuid/);
  });

  it('keeps only the end of the console output', async () => {
    const { hypervisor, id } = await aGuest();
    for (let i = 0; i < 100; i++) hypervisor.guest(id).print(`${i} `.padEnd(1024, '.'));
    const log = await hypervisor.readConsoleLog(id);
    assert.equal(log.length, 16 * 1024);
    assert.ok(log.includes('99 ..'));
  });

  it('fails the next start and no other', async () => {
    const { hypervisor } = await aGuest();
    const wanted = aDefinition();
    hypervisor.failNextCreate(new HypervisorError('no memory'));

    await assert.rejects(hypervisor.create(wanted), /no memory/);
    await hypervisor.create(wanted);

    assert.equal(hypervisor.list().length, 2);
  });

  it('measures the latency of a start with the clock', async () => {
    const clock = new FakeClock();
    const hypervisor = createFakeHypervisor({ clock, latencyMs: 200 });
    await hypervisor.adopt();
    const create = hypervisor.create(aDefinition());
    await clock.advance(199);
    assert.deepEqual(hypervisor.list(), []);
    await clock.advance(1);
    await create;
    assert.equal(hypervisor.list().length, 1);
    assert.equal(clock.pendingTimers, 0);
  });

  describe('copies of disks', () => {
    const FIRST = { copyId: 'a', deviceId: 'disk-first', path: '/copies/a' };
    const SECOND = { copyId: 'b', deviceId: 'disk-second', path: '/copies/b' };

    async function aCopier({ hold }: { hold: boolean }) {
      const { hypervisor } = await aGuest();
      hypervisor.host.holdCopies = hold;
      const definition = definitionWithDisks();
      await hypervisor.create(definition);
      return { hypervisor, id: definition.id };
    }

    it('calls onCopy once with the whole set, before the listeners', async () => {
      const { hypervisor, id } = await aCopier({ hold: false });
      const seen: unknown[] = [];
      hypervisor.host.onCopy = (copies) => seen.push(copies);
      hypervisor.onChange(() => seen.push('changed'));

      await hypervisor.startCopies(id, [FIRST, SECOND]);
      await hypervisor.startCopies(id, [FIRST, SECOND]);

      const copied = [
        { path: '/copies/a', source: '/disks/first', format: 'raw' },
        { path: '/copies/b', source: '/disks/second', format: 'raw' },
      ];
      assert.deepEqual(seen, [copied, 'changed']);
    });

    it('writes the files with copyImages, and starts no copy if that fails', async () => {
      const definition = definitionWithDisks();
      const made: string[] = [];
      const copyImages = async (copies: readonly { path: string }[]) => {
        if (made.length === 0) made.push(...copies.map(({ path }) => path));
        else throw new HypervisorError('no such image');
      };
      const hypervisor = createFakeHypervisor({ clock: new FakeClock(), copyImages });
      await hypervisor.adopt();
      await hypervisor.create(definition);

      await hypervisor.startCopies(definition.id, [FIRST]);
      await assert.rejects(hypervisor.startCopies(definition.id, [SECOND]), /no such image/);

      assert.deepEqual(made, ['/copies/a']);
      assert.equal(await hypervisor.copyState(definition.id, 'b'), undefined);
    });

    it('holds copies until they are completed or failed', async () => {
      const { hypervisor, id } = await aCopier({ hold: true });
      await hypervisor.startCopies(id, [FIRST]);
      assert.equal((await hypervisor.copyState(id, 'a'))?.state, 'copying');
      hypervisor.host.finishCopies();
      await hypervisor.startCopies(id, [SECOND]);
      hypervisor.host.failCopies('no space left');

      assert.deepEqual(await hypervisor.copyState(id, 'a'), { state: 'done' });
      assert.deepEqual(await hypervisor.copyState(id, 'b'), { state: 'failed', message: 'no space left' });
    });
  });

  it('belongs to the last hypervisor that adopted the host', async () => {
    const { hypervisor, id } = await aGuest();
    const seen: string[] = [];
    hypervisor.onChange((changed) => seen.push(changed));
    const next = createFakeHypervisor({ clock: new FakeClock(), host: hypervisor.host });
    await next.adopt();
    next.guest(id).shutDown();

    assert.deepEqual(seen, []);
    assert.deepEqual(hypervisor.list(), []);
    await assert.rejects(hypervisor.destroy(id), HypervisorError);
  });

  it('ignores files that a killed process left incomplete', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'fake-hypervisor-'));
    try {
      const first = createFakeHypervisor({ clock: new FakeClock(), dir });
      await first.adopt();
      await first.create(aDefinition());
      writeFileSync(join(dir, `${aDefinition().id}.json.new`), '{"id":');

      const next = createFakeHypervisor({ clock: new FakeClock(), dir });
      await next.adopt();

      assert.equal(next.list().length, 1);
      await next.destroy(next.list()[0]!.id);
      await next.remove(next.list()[0]!.id);
      assert.deepEqual(
        readdirSync(dir).filter((file) => file.endsWith('.json')),
        [],
      );
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
