/**
 * A real guest with OVMF and a TPM moves, and somebody dies at a step of the hand-over: an agent, a guest, or a node with
 * both. It comes back a moment later. Wherever the guest is then, there is one, and what it last wrote into its TPM, its
 * EFI variables and its disk is there.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { whyNoQemu } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { MigratingGuest, strike, type Strike } from '#test/support/migrating-guest.ts';
import { QemuPlane } from '#test/support/qemu-plane.ts';

interface Cut extends Strike {
  readonly ends: 'Succeeded' | 'Failed';
  /** Where the guest's memory is lost. */
  readonly boots?: true;
}

/** What comes of it at these; all combinations are in migration-cuts.test.ts, and on simulated guests in test/crash. */
const cuts: readonly Cut[] = [
  { at: ['after', 'send'], dies: 'source agent', ends: 'Failed' },
  { at: ['after', 'receive'], dies: 'target agent', ends: 'Failed' },
  { at: ['after', 'store'], dies: 'target agent', ends: 'Failed' },
  { at: ['before', 'store'], dies: 'target guest', ends: 'Failed' },
  { at: ['after', 'store'], dies: 'target node', ends: 'Failed' },
  { at: ['before', 'recordMigrated'], dies: 'source agent', ends: 'Failed' },
  { at: ['after', 'recordMigrated'], dies: 'source agent', ends: 'Succeeded' },
  { at: ['after', 'recordMigrated'], dies: 'source node', ends: 'Succeeded' },
  { at: ['before', 'commit'], dies: 'target agent', ends: 'Succeeded' },
  { at: ['after', 'commit'], dies: 'target agent', ends: 'Succeeded' },
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
    const { outcome, source, target } = await strike(plane, guest, { at, dies });
    assert.match(outcome, new RegExp(`^${ends}`));

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
