/**
 * A real guest with OVMF and a TPM migrates, and a component is killed at a step of the hand-over: an agent, a guest, or a
 * node with both. It returns shortly after. Then one guest runs, with the last data in its TPM, its EFI variables and on
 * its disk.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { qemuSkipReason } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { MigratingGuest, migrateWithFault, type Fault } from '#test/support/migrating-guest.ts';
import { QemuPlane } from '#test/support/qemu-plane.ts';

interface Cut extends Fault {
  readonly ends: 'Succeeded' | 'Failed';
  /** The guest loses its memory and boots again. */
  readonly boots?: true;
}

/** Kills with a known outcome; migration-kills.test.ts has all combinations, and test/crash has them on simulated guests. */
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

const skip = qemuSkipReason();
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
  test(`the migration is ${ends} when the ${dies} dies ${at.join(' ')}`, { skip, timeout: 300_000 }, async () => {
    const wrote = await guest.writeState();
    const { outcome, source, target } = await migrateWithFault(plane, guest, { at, dies });
    assert.match(outcome, new RegExp(`^${ends}`));

    if (boots === true) {
      await guest.awaitBoot(wrote.bootId ?? '');
      const { nv, efi, disk, pcr } = await guest.memory();
      assert.deepEqual({ nv, efi, disk }, { nv: wrote.nv, efi: wrote.efi, disk: wrote.disk });
      assert.notEqual(pcr, wrote.pcr, 'measurements belong to one boot');
    } else assert.deepEqual(await guest.memory(), wrote);
    await guest.assertInvariants();
    const [now] = await guest.runningNodes();
    assert.equal(now, ends === 'Succeeded' ? target : source);
  });
}
