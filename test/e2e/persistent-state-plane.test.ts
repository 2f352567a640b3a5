/** A real guest whose TPM and EFI variables are persistent, on the whole program: stopped, started, killed, restored. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';
import { STATEFUL_DOMAIN } from '#test/support/stateful-domain.ts';

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) });
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const KEEPER: VirtualMachine = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'keeper', namespace: 'default' },
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

const factsOf = ({ facts }: GuestReport) => ({ nv: facts['tpm.nv'], efi: facts['efi.var'], pcr: facts['tpm.pcr12'] });

test('TPM state and EFI variables are the same at every start', { timeout: 600_000 }, async () => {
  const guest = plane.guest('keeper');
  const claims = async () => {
    const labelSelector = `${STATE_LABEL}=keeper`;
    const { items } = await plane.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default', labelSelector });
    return items.map(({ metadata, spec, status }) => [metadata.uid, spec.storageClassName, status?.phase]);
  };
  await plane.create(VIRTUAL_MACHINES, KEEPER);
  const fresh = await guest.awaitBoot();
  assert.match(fresh.facts['tpm.nv'] ?? '', /^none/);
  assert.equal(fresh.facts['efi.var'], 'none');
  const received = await guest.runCommand(
    'nvset remember-me\npcrext\nefiset so-do-i\nprobe written',
    /GUEST END written/,
  );
  const written = lastReport(received, 'written');
  assert.match(written?.facts['tpm.nv'] ?? '', /^remember-me/);
  assert.notEqual(written?.facts['tpm.pcr12'], fresh.facts['tpm.pcr12']);
  const [claim, ...more] = await claims();
  assert.deepEqual([claim?.slice(1), more], [['local', 'Bound'], []]);
  // Measurements belong to one boot.
  const want = { nv: written?.facts['tpm.nv'], efi: 'so-do-i', pcr: fresh.facts['tpm.pcr12'] };

  await plane.put('virtualmachines/keeper/stop');
  await guest.awaitVm('is stopped', ({ status }) => status?.printableStatus === 'Stopped' && status.created !== true);
  await plane.put('virtualmachines/keeper/start');
  const { bootid = '' } = fresh.facts;
  const second = await guest.awaitBoot({ afterBootId: bootid });
  assert.deepEqual(factsOf(second), want, 'after a stop');

  const [qemu, ...others] = plane.processes().filter(({ command }) => command.includes('qemu'));
  assert.ok(qemu !== undefined && others.length === 0);
  process.kill(qemu.pid, 'SIGKILL');
  const third = await guest.awaitBoot({ afterBootId: second.facts['bootid'] ?? '' });
  assert.deepEqual(factsOf(third), want, 'after kill -9 of QEMU');
  assert.deepEqual(await claims(), [claim]);

  const of = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'keeper' };
  const metadata = { name: 'then', namespace: 'default' };
  await plane.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata,
    spec: { source: of },
  });
  await plane.awaitObject(VIRTUAL_MACHINE_SNAPSHOTS, 'then', (snapshot) => snapshot?.status?.readyToUse === true);
  await guest.runCommand('nvset forget-me\nefiset me-too\nprobe later', /GUEST END later/);
  await plane.put('virtualmachines/keeper/stop');
  await guest.awaitVm('is stopped', ({ status }) => status?.printableStatus === 'Stopped' && status.created !== true);
  await plane.create(VIRTUAL_MACHINE_RESTORES, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata,
    spec: { target: of, virtualMachineSnapshotName: 'then' },
  });
  await plane.awaitObject(VIRTUAL_MACHINE_RESTORES, 'then', (restore) => restore?.status?.complete === true);
  await guest.awaitVm('is released by the restore', ({ status }) => status?.restoreInProgress === undefined);
  await plane.put('virtualmachines/keeper/start');
  const restored = await guest.awaitBoot({ afterBootId: third.facts['bootid'] ?? '' });
  assert.deepEqual(factsOf(restored), want, 'as of the snapshot');
  const [another, ...besides] = await claims();
  assert.ok(
    another !== undefined && another[0] !== claim?.[0] && besides.length === 0,
    'on a new claim that replaced the old one',
  );

  await plane.client.delete(VIRTUAL_MACHINES, { namespace: 'default', name: 'keeper' });
  await plane.awaitObject(VIRTUAL_MACHINES, 'keeper', (vm) => vm === undefined);
});
