/**
 * A real guest with OVMF and a TPM moves, and somebody dies at a step of the hand-over: an agent, a guest, or a node with
 * both. It comes back a moment later. Wherever the guest is then, there is one, and what it last wrote into its TPM, its
 * EFI variables and its disk is there.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { whyNoQemu } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { MigratingGuest } from '#test/support/migrating-guest.ts';
import { QemuPlane } from '#test/support/qemu-plane.ts';

interface Cut {
  /** At the side that calls it: `before` or `after` it. */
  readonly at: readonly ['before' | 'after', string];
  /** Who dies there. */
  readonly dies: 'source agent' | 'target agent' | 'source guest' | 'target guest' | 'source node' | 'target node';
  readonly ends: 'Succeeded' | 'Failed';
  /** Where nobody but the guest's memory is lost. */
  readonly boots?: true;
}

const cuts: readonly Cut[] = [
  { at: ['before', 'send'], dies: 'source agent', ends: 'Failed' },
  { at: ['after', 'send'], dies: 'source agent', ends: 'Failed' },
  { at: ['after', 'receive'], dies: 'target agent', ends: 'Failed' },
  { at: ['before', 'store'], dies: 'target agent', ends: 'Failed' },
  { at: ['after', 'store'], dies: 'target agent', ends: 'Failed' },
  { at: ['before', 'store'], dies: 'target guest', ends: 'Failed' },
  { at: ['after', 'store'], dies: 'target node', ends: 'Failed' },
  { at: ['before', 'recordMigrated'], dies: 'source agent', ends: 'Failed' },
  { at: ['after', 'recordMigrated'], dies: 'source agent', ends: 'Succeeded' },
  { at: ['after', 'recordMigrated'], dies: 'source node', ends: 'Succeeded' },
  { at: ['before', 'commit'], dies: 'target agent', ends: 'Succeeded' },
  { at: ['after', 'commit'], dies: 'target agent', ends: 'Succeeded' },
  { at: ['before', 'leave'], dies: 'source agent', ends: 'Succeeded' },
  { at: ['before', 'commit'], dies: 'target node', ends: 'Succeeded', boots: true },
];

const skip = whyNoQemu();
let plane: QemuPlane;
let guest: MigratingGuest;

before(async () => {
  if (skip !== false) return;
  plane = await QemuPlane.start();
  guest = new MigratingGuest(plane, 'mover');
  await guest.create();
});

after(async () => {
  await plane?.stop();
});

for (const { at, dies, ends, boots } of cuts) {
  test(`the ${dies} dies ${at.join(' ')}: ${ends}`, { skip, timeout: 300_000 }, async () => {
    const wrote = await guest.write();
    const [source] = await guest.running();
    const target = plane.nodes.find((node) => node !== source);
    assert.ok(source !== undefined && target !== undefined);
    const victim = dies.startsWith('source') ? source : target;
    let struck = false;
    plane.seen = ({ method, when }) => {
      if (struck || when !== at[0] || method !== at[1]) return;
      struck = true;
      if (!dies.endsWith('agent')) victim.killGuests();
      if (!dies.endsWith('guest')) victim.slam();
    };
    const name = await guest.startMigration();
    await plane.until('somebody died', () => struck || undefined);
    if (!dies.endsWith('guest')) {
      await victim.kill();
      await victim.start();
    }
    assert.match(await guest.ended(name), new RegExp(`^${ends}`));
    plane.seen = undefined;

    if (boots === true) {
      await guest.booted(wrote.bootId ?? '');
      const { nv, efi, disk, pcr } = await guest.memory();
      assert.deepEqual({ nv, efi, disk }, { nv: wrote.nv, efi: wrote.efi, disk: wrote.disk });
      assert.notEqual(pcr, wrote.pcr, 'measurements are of one boot');
    } else assert.deepEqual(await guest.memory(), wrote);
    await guest.judge();
    const [now] = await guest.running();
    assert.equal(now, ends === 'Succeeded' ? target : source);
  });
}
