/**
 * Real guests migrate between the nodes of the whole program: with OVMF and a TPM, disks of every kind, one of them
 * hotplugged; there and back, after a restart, cancelled and failed. The guest reports what it sees. The state of the
 * first guest is on RWO Filesystem, that of the busy one on RWX Block; test/full has the other combinations.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type AccessMode,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { lastReport } from '#cli/tour/guest-report.ts';
import { blockStateSkipReason } from '#node/volumes/local/testing/block-support.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import {
  migrate,
  awaitMigration,
  probe,
  readDisk,
  stableFacts,
  startMigration,
} from '#test/support/real-migrations.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';

const namespace = 'default';
const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) });
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

type Template = NonNullable<VirtualMachine['spec']['template']>['spec'];

function aVm(name: string, spec: Template): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: { runStrategy: 'Always', template: { spec } },
  };
}

const kernelBoot = { kernelArgs: 'console=ttyS0 quiet no_timer_check', container: { image: GUEST_IMAGE } };
const KEEPING = {
  memory: { guest: '256Mi' },
  firmware: { bootloader: { efi: { secureBoot: false, persistent: true } }, kernelBoot },
};

function aClaim(name: string, storageClassName: string, mode: AccessMode = 'ReadWriteOnce'): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace },
    spec: {
      accessModes: [mode],
      storageClassName,
      volumeMode: storageClassName.endsWith('-block') ? 'Block' : 'Filesystem',
      resources: { requests: { storage: '32Mi' } },
    },
  };
}

async function stateClaimsOf(name: string): Promise<string[]> {
  const labelSelector = `${STATE_LABEL}=${name}`;
  const { items } = await plane.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace, labelSelector });
  return items.map(({ metadata }) => metadata.name);
}

async function volumeOf(claim: string): Promise<Stored<PersistentVolume>> {
  const { spec } = await plane.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name: claim });
  return await plane.client.get(PERSISTENT_VOLUMES, { name: spec.volumeName ?? '' });
}

const hasData = (node: string, volume: string) => existsSync(join(plane.dataDir, 'nodes', node, 'volumes', volume));

test('a guest with all kinds of disks and state migrates there and back', { timeout: 900_000 }, async () => {
  for (const claim of [
    aClaim('w-root', 'local'),
    aClaim('w-shared', 'shared', 'ReadWriteMany'),
    aClaim('w-late', 'local'),
  ]) {
    await plane.create(PERSISTENT_VOLUME_CLAIMS, claim);
  }
  await plane.create(
    VIRTUAL_MACHINES,
    aVm('wanderer', {
      domain: {
        ...KEEPING,
        devices: {
          tpm: { persistent: true },
          interfaces: [{ name: 'default', masquerade: {} }],
          disks: [
            { name: 'root', disk: { bus: 'virtio' }, serial: 'ROOT' },
            { name: 'shared', disk: { bus: 'virtio' }, serial: 'SHARED' },
            { name: 'scratch', disk: { bus: 'virtio' }, serial: 'SCRATCH' },
            { name: 'init', cdrom: { bus: 'sata' } },
          ],
        },
      },
      networks: [{ name: 'default', pod: {} }],
      volumes: [
        { name: 'root', persistentVolumeClaim: { claimName: 'w-root' } },
        { name: 'shared', persistentVolumeClaim: { claimName: 'w-shared' } },
        { name: 'scratch', emptyDisk: { capacity: '8Mi' } },
        { name: 'init', cloudInitNoCloud: { userData: '#cloud-config\n' } },
      ],
    }),
  );
  const guest = plane.guest('wanderer');
  const fresh = await guest.awaitBoot();
  await plane.put('virtualmachines/wanderer/addvolume', {
    name: 'late',
    disk: { disk: { bus: 'scsi' }, serial: 'LATE' },
    volumeSource: { persistentVolumeClaim: { claimName: 'w-late', hotpluggable: true } },
  });
  await guest.awaitVmi(
    'the hotplugged disk is ready',
    (vmi) => vmi?.status?.volumeStatus?.some(({ name, phase }) => name === 'late' && phase === 'Ready') === true,
  );
  const diskBy = new Map((await probe(plane, 'wanderer')).disks.map(({ serial, name }) => [serial, name]));
  const names = ['ROOT', 'SHARED', 'SCRATCH', 'LATE'].map((serial) => diskBy.get(serial) ?? serial);
  const before = await probe(plane, 'wanderer', [
    'nvset moves-along',
    'pcrext',
    'efiset me-too',
    ...names.map((name) => `write ${name} on-${name}`),
  ]);
  assert.match(before.facts['tpm.nv'] ?? '', /^moves-along/);
  const record = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, { namespace, name: 'wanderer' });
  const [firstClaim] = await stateClaimsOf('wanderer');
  const { spec: stateSpec } = await plane.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name: firstClaim ?? '' });
  assert.deepEqual([stateSpec.volumeMode, stateSpec.accessModes], ['Filesystem', ['ReadWriteOnce']]);
  const firstNode = (await guest.vmi()).status?.nodeName ?? '';
  const rootVolume = (await volumeOf('w-root')).metadata.name;

  for (const way of ['there', 'and back']) {
    const { status } = await migrate(plane, 'wanderer');
    const after = await probe(plane, 'wanderer');
    assert.deepEqual(stableFacts(after), stableFacts(before), `the machine is the same ${way}`);
    for (const name of names) assert.equal(await readDisk(plane, 'wanderer', name), `on-${name}`, way);
    const node = (await guest.vmi()).status?.nodeName ?? '';
    for (const claim of ['w-root', 'w-late']) {
      assert.equal((await volumeOf(claim)).metadata.annotations?.[VOLUME_NODE_ANNOTATION], node, way);
    }
    const other = node === 'node-1' ? 'node-2' : 'node-1';
    await plane.awaitObject(PERSISTENT_VOLUMES, rootVolume, () => !hasData(other, rootVolume));
    assert.ok(hasData(node, rootVolume));
    const claims = await stateClaimsOf('wanderer');
    assert.deepEqual(claims, [status?.migrationState?.targetPersistentStatePVCName], way);
    assert.ok(Number(status?.migrationProgress?.downtimeMs) > 0);
  }
  assert.equal((await guest.vmi()).status?.nodeName, firstNode);
  await plane.awaitObject(PERSISTENT_VOLUME_CLAIMS, firstClaim ?? '', (claim) => claim === undefined);
  const now = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, { namespace, name: 'wanderer' });
  const { history: past = [], stateClaim: _, ...recorded } = record.status ?? {};
  const { history = [], stateClaim, ...after } = now.status ?? {};
  assert.deepEqual(after, recorded, 'no device changes its address');
  assert.deepEqual(history.slice(0, past.length), past);
  const moves = history.slice(past.length);
  assert.ok(moves.length > 0);
  for (const { cause = '', changes = [] } of moves) {
    assert.match(cause, /^migration wanderer-/);
    assert.deepEqual(
      changes.map(({ field }) => field),
      ['stateClaim'],
    );
  }
  assert.deepEqual([stateClaim], await stateClaimsOf('wanderer'), 'only the claim of its state has changed');

  // Slow enough to be cancelled during the copy.
  await setBandwidth('2Mi');
  const cancelled = await startMigration(plane, 'wanderer');
  await plane.awaitObject(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, cancelled, (one) => one?.status?.phase === 'Running');
  await plane.client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, name: cancelled });
  await plane.awaitObject(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, cancelled, (one) => one === undefined);
  assert.deepEqual(stableFacts(await probe(plane, 'wanderer')), stableFacts(before), 'cancelled');

  const failing = await startMigration(plane, 'wanderer');
  await plane.awaitObject(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, failing, (one) => one?.status?.phase === 'Running');
  const target = (await guest.vmi()).status?.migrationState?.targetNode ?? '';
  for (const { pid } of qemusOf(target)) process.kill(pid, 'SIGKILL');
  const failed = await awaitMigration(plane, failing);
  assert.equal(failed?.status?.phase, 'Failed');
  assert.notEqual(failed.status.migrationState?.failureReason ?? '', '');
  await setBandwidth('0');
  assert.deepEqual(stableFacts(await probe(plane, 'wanderer')), stableFacts(before), 'failed');
  const [left, ...more] = await stateClaimsOf('wanderer');
  assert.ok(left !== undefined && more.length === 0);

  await plane.put('virtualmachines/wanderer/restart');
  const again = await guest.awaitBoot({ afterBootId: before.facts['bootid'] ?? '' });
  assert.equal(again.facts['tpm.nv'], before.facts['tpm.nv']);
  assert.equal(again.facts['efi.var'], 'me-too');
  assert.equal(again.facts['tpm.pcr12'], fresh.facts['tpm.pcr12'], 'measurements belong to one boot');
  assert.deepEqual(again.pci, before.pci);
  await migrate(plane, 'wanderer');
  const moved = await probe(plane, 'wanderer');
  assert.deepEqual(stableFacts(moved), stableFacts(again), 'restarted, then migrated');
  await plane.client.delete(VIRTUAL_MACHINES, { namespace, name: 'wanderer' });
  await plane.awaitObject(VIRTUAL_MACHINES, 'wanderer', (vm) => vm === undefined);
});

function qemusOf(node: string): { pid: number }[] {
  const below = join(plane.dataDir, 'nodes', node);
  return plane.processes({ below }).filter(({ command }) => command.includes('qemu'));
}

async function setBandwidth(bandwidthPerMigration: string): Promise<void> {
  await configure({ migrations: { bandwidthPerMigration } });
}

async function configure(configuration: object): Promise<void> {
  const { items } = await plane.client.list(KUBEVIRTS, {});
  const { metadata } = items[0] ?? assert.fail('there is a KubeVirt object');
  const body = { spec: { configuration } };
  await plane.client.patch(KUBEVIRTS, { namespace: metadata.namespace, name: metadata.name }, { type: 'merge', body });
}

const ROUNDS = FULL_RUN ? 20 : 5;
const noBlock = blockStateSkipReason();

test(`a busy guest with TPM and EFI variables survives ${ROUNDS} migrations`, { timeout: 600_000 }, async (t) => {
  await configure({ vmStateStorageClass: noBlock === false ? 'shared-block' : 'shared' });
  await plane.create(
    VIRTUAL_MACHINES,
    aVm('busy', {
      domain: { ...KEEPING, devices: { tpm: { persistent: true } } },
    }),
  );
  const guest = plane.guest('busy');
  const { facts } = await guest.awaitBoot();
  assert.match(facts['tpm.nv'] ?? '', /^none/);
  await guest.runCommand('nvset works-on\npcrext\nefiset too\ndirty 16\nprobe dirty', /GUEST END dirty/);
  for (let round = 1; round <= ROUNDS; round++) {
    await migrate(plane, 'busy');
    const output = await guest.runCommand(`probe round${round}`, new RegExp(`GUEST END round${round}`));
    assert.doesNotMatch(output, /Oops|BUG|panic|segfault/i, `round ${round}`);
    const now = lastReport(output, `round${round}`)?.facts ?? {};
    assert.equal(now['bootid'], facts['bootid'], `round ${round}`);
    assert.match(now['tpm.nv'] ?? '', /^works-on/, `round ${round}`);
    assert.equal(now['efi.var'], 'too', `round ${round}`);
    assert.notEqual(now['tpm.pcr12'], facts['tpm.pcr12'], `round ${round}`);
  }
  await t.test('with its state on a block volume that every node reaches', { skip: noBlock }, async () => {
    const [name = '', ...more] = await stateClaimsOf('busy');
    const { spec } = await plane.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name });
    assert.deepEqual([spec.volumeMode, spec.accessModes, more], ['Block', ['ReadWriteMany'], []]);
  });
  await plane.client.delete(VIRTUAL_MACHINES, { namespace, name: 'busy' });
  await plane.awaitObject(VIRTUAL_MACHINES, 'busy', (vm) => vm === undefined);
});
