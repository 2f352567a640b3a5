import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { hypervisorConformance, type ConformanceScene } from '../conformance.ts';
import { HypervisorError } from '../hypervisor.ts';
import { aDefinition } from '../testing/a-definition.ts';
import { FakeHost } from './fake-host.ts';
import { createFakeHypervisor, type FakeHypervisor } from './fake-hypervisor.ts';

async function inMemory(): Promise<ConformanceScene> {
  const host = new FakeHost();
  return sceneOf(() => createFakeHypervisor({ clock: new FakeClock(), host }), {
    crash: async (id) => host.guest(id)?.crash('killed'),
  });
}

async function inFiles(): Promise<ConformanceScene> {
  const dir = mkdtempSync(join(tmpdir(), 'fake-hypervisor-'));
  let open: FakeHypervisor | undefined;
  const scene = await sceneOf(() => (open = createFakeHypervisor({ clock: new FakeClock(), dir })), {
    crash: async (id) => open?.host.guest(id)?.crash('killed'),
  });
  return { ...scene, end: async () => rmSync(dir, { recursive: true }) };
}

async function stubborn(): Promise<ConformanceScene> {
  const scene = await inMemory();
  const hypervisor = scene.hypervisor as FakeHypervisor;
  const create = hypervisor.create.bind(hypervisor);
  hypervisor.create = async (definition, options) => {
    await create(definition, options);
    hypervisor.guest(definition.id).ignorePowerButton();
  };
  return { ...scene, obeys: false };
}

async function sceneOf(
  open: () => FakeHypervisor,
  { crash }: { crash: (id: string) => Promise<void> },
): Promise<ConformanceScene> {
  const hypervisor = open();
  await hypervisor.adopt();
  return {
    hypervisor,
    async reopen(meanwhile) {
      await meanwhile?.();
      return open();
    },
    definition: (overrides?: Partial<DomainDefinition>) => aDefinition(overrides),
    killGuest: crash,
    obeys: true,
    talks: true,
    end: async () => undefined,
  };
}

hypervisorConformance('fake in memory', inMemory);
hypervisorConformance('fake in files', inFiles);
hypervisorConformance('fake with stubborn guests', stubborn);

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

  it('acts on the power button only once the guest goes on', async () => {
    const { hypervisor, id } = await aGuest();
    await hypervisor.pause(id);
    await hypervisor.powerDown(id);
    assert.deepEqual(hypervisor.get(id)?.current, { state: 'paused' });

    await hypervisor.resume(id);
    assert.deepEqual(hypervisor.get(id)?.current, { state: 'ended', how: 'shutdown' });
  });

  it('says its uuid at each boot, and not before it runs', async () => {
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

  it('keeps only the last of what a guest said', async () => {
    const { hypervisor, id } = await aGuest();
    for (let i = 0; i < 100; i++) hypervisor.guest(id).say(`${i} `.padEnd(1024, '.'));
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

  it('takes the time of a start from the clock', async () => {
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

  it('belongs to the last that adopted it', async () => {
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

  it('passes over what a killed process left half written', async () => {
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
