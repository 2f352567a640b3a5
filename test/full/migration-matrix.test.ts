/**
 * The migration tests that test/e2e runs on RWO Filesystem, on every kind of storage for state and disk: there and back,
 * restarted, restarted and migrated, cancelled, and with kills before and after the commit.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { qemuSkipReason } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { MigratingGuest, migrateWithFault, type GuestState } from '#test/support/migrating-guest.ts';
import { QemuPlane } from '#test/support/qemu-plane.ts';

const STORAGES = {
  local: { volumeMode: 'Filesystem', accessMode: 'ReadWriteOnce' },
  shared: { volumeMode: 'Filesystem', accessMode: 'ReadWriteMany' },
  'local-block': { volumeMode: 'Block', accessMode: 'ReadWriteOnce' },
  'shared-block': { volumeMode: 'Block', accessMode: 'ReadWriteMany' },
} as const;

const skip = qemuSkipReason();
let plane: QemuPlane;

before(async () => {
  if (skip === false) plane = await QemuPlane.start();
});

after(async () => {
  await plane?.stop();
});

async function useClass(name: keyof typeof STORAGES): Promise<void> {
  await plane.api.ok('PATCH', '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt', {
    contentType: 'application/merge-patch+json',
    body: { spec: { configuration: { vmStateStorageClass: name } } },
  });
}

const kept = ({ nv, efi, disk }: GuestState) => ({ nv, efi, disk });

for (const name of Object.keys(STORAGES) as (keyof typeof STORAGES)[]) {
  test(
    `a guest on ${name} keeps its data through migrations, restarts and kills`,
    { skip, timeout: 900_000 },
    async () => {
      const { volumeMode, accessMode } = STORAGES[name];
      await useClass(name);
      const guest = new MigratingGuest(plane, `on-${name}`);
      await guest.create({ storageClass: name, mode: accessMode, block: volumeMode === 'Block' });
      const wrote = await guest.writeState();
      for (const way of ['there', 'back']) {
        await guest.migrate();
        assert.deepEqual(await guest.memory(), wrote, way);
        await guest.assertInvariants();
      }
      await guest.sendVerb('restart');
      await guest.awaitBoot(wrote.bootId ?? '');
      const again = await guest.memory();
      assert.deepEqual(kept(again), kept(wrote), 'restarted');
      assert.notEqual(again.pcr, wrote.pcr, 'measurements belong to one boot');
      await guest.migrate();
      assert.deepEqual(await guest.memory(), again, 'restarted and migrated');

      const latest = await guest.writeState();
      const cancelled = await guest.startMigration();
      await guest.cancel(cancelled);
      await plane.awaitValue('it is gone', async () => (await guest.migration(cancelled)) === undefined);
      assert.deepEqual(await guest.memory(), latest, 'cancelled, or completed just before');
      for (const at of [
        ['before', 'recordMigrated'],
        ['after', 'recordMigrated'],
      ] as const) {
        await migrateWithFault(plane, guest, { at, dies: 'source agent' });
        assert.deepEqual(await guest.memory(), latest, at.join(' '));
        await guest.assertInvariants();
      }
      await plane.api.ok('DELETE', `/apis/kubevirt.io/v1/namespaces/default/virtualmachines/${guest.name}`);
      await plane.awaitValue('the VM is gone', async () => (await guest.vmi()) === undefined);
    },
  );
}
