/**
 * Like migration-outcomes.test.ts, with kills before and after every step: of an agent, a guest, or a node with both, on
 * either side. The test does not predict the outcome, but there is one, with one guest and its last data.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { qemuSkipReason } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { MigratingGuest, migrateWithFault, VICTIMS } from '#test/support/migrating-guest.ts';
import { QemuPlane } from '#test/support/qemu-plane.ts';

const STEPS = ['receive', 'send', 'switchOver', 'store', 'recordMigrated', 'commit', 'leave'];

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

for (const step of STEPS) {
  for (const when of ['before', 'after'] as const) {
    for (const dies of VICTIMS) {
      test(
        `a migration ends with one guest when the ${dies} dies ${when} ${step}`,
        { skip, timeout: 300_000 },
        async () => {
          const wrote = await guest.writeState();
          const [source] = await guest.runningNodes();
          const { outcome, target } = await migrateWithFault(plane, guest, { at: [when, step], dies });
          assert.match(outcome, /^(Succeeded|Failed)/);
          await guest.awaitSettled();
          const { nv, efi, disk } = await guest.memory();
          assert.deepEqual({ nv, efi, disk }, { nv: wrote.nv, efi: wrote.efi, disk: wrote.disk });
          await guest.assertInvariants();
          const [now] = await guest.runningNodes();
          assert.equal(now, outcome === 'Succeeded' ? target : source, outcome);
        },
      );
    }
  }
}
