/**
 * The persistent state of real guests with OVMF and a TPM on every kind of storage: one migration and one restart each.
 * test/e2e/live-migration.test.ts tests RWO Filesystem in detail. The guests boot in parallel, which takes most of the time.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { migrate, probe, stableFacts } from '#test/support/real-migrations.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';
import { STATEFUL_DOMAIN } from '#test/support/stateful-domain.ts';

const namespace = 'default';
const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;

/** By the name of the VM; names may have dots and up to 63 characters. */
const storages = {
  'shared.files': { storageClass: 'shared', volumeMode: 'Filesystem', accessMode: 'ReadWriteMany' },
  'own-block': { storageClass: 'local-block', volumeMode: 'Block', accessMode: 'ReadWriteOnce' },
  [`shared-block-${'x'.repeat(50)}`]: {
    storageClass: 'shared-block',
    volumeMode: 'Block',
    accessMode: 'ReadWriteMany',
  },
} as const;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) });
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

function aVm(name: string): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            ...STATEFUL_DOMAIN,
            devices: { tpm: { persistent: true } },
          },
        },
      },
    },
  };
}

async function useClass(vmStateStorageClass: string): Promise<void> {
  const { items } = await plane.client.list(KUBEVIRTS, {});
  const { namespace: where, name } = items[0]!.metadata;
  const body = { spec: { configuration: { vmStateStorageClass } } };
  await plane.client.patch(KUBEVIRTS, { namespace: where, name }, { type: 'merge', body });
}

test('state survives a migration and a restart on every kind of storage', { timeout: 900_000 }, async () => {
  for (const [name, { storageClass }] of Object.entries(storages)) {
    await useClass(storageClass);
    await plane.create(VIRTUAL_MACHINES, aVm(name));
    await plane.guest(name).awaitVmi('it has a node', (vmi) => vmi?.status?.nodeName !== undefined);
  }
  const names = Object.keys(storages);
  const fresh = await Promise.all(names.map((name) => plane.guest(name).awaitBoot()));
  for (const [index, name] of names.entries()) {
    const written = await probe(plane, name, [`nvset nv-${index}`, 'pcrext', `efiset efi-${index}`]);
    await migrate(plane, name);
    assert.deepEqual(stableFacts(await probe(plane, name)), stableFacts(written), name);
    const { storageClass, volumeMode, accessMode } = Object.values(storages)[index]!;
    const { items } = await plane.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace, labelSelector: STATE_LABEL });
    const [claim, ...more] = items.filter(({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.name === name),
    );
    assert.deepEqual(more, [], name);
    const { spec } = claim ?? assert.fail(`${name} has a claim for its state`);
    assert.deepEqual(
      [spec.storageClassName, spec.volumeMode, spec.accessModes],
      [storageClass, volumeMode, [accessMode]],
    );
  }
  for (const name of names) await plane.put(`virtualmachines/${name}/restart`);
  for (const [index, name] of names.entries()) {
    const { facts } = fresh[index]!;
    const again = await plane.guest(name).awaitBoot({ afterBootId: facts['bootid'] ?? '' });
    assert.match(again.facts['tpm.nv'] ?? '', new RegExp(`^nv-${index}`), name);
    assert.equal(again.facts['efi.var'], `efi-${index}`, name);
    assert.equal(again.facts['tpm.pcr12'], facts['tpm.pcr12'], name);
  }
});
