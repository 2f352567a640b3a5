/**
 * A day of a VM owner with a real Debian guest (UEFI, TPM, cloud-init, guest agent) on two planes. The guest records what
 * identifies it and compares it itself after each step (test/support/owners-day-guest.sh), while it writes files with
 * checksums. Until the first process is killed, the log of the planes must be empty.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { parseYaml } from '#kube/yaml.ts';
import { errorMessage } from '#lib/error-message.ts';
import { isAlive } from '#lib/files/owned-dir.ts';
import { debianImage, makeSshKey, ownerOf, type DebianGuest, type Owner } from '#test/support/debian-guest.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';
import { createTemporaryDir } from '#test/support/server-process.ts';

const GUEST_SCRIPT = join(import.meta.dirname, '../support/owners-day-guest.sh');
const POLL_MS = 100;
const TIMEOUT_MS = 3_600_000;
const OLD_MACHINE_TYPE = 'pc-q35-6.2';
const EXTRA_CLAIM = JSON.stringify({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'extra' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '256Mi' } } },
});
/** The differences that another machine with copies of the disks and of the state finds. */
const OTHER_MACHINE = 'DIFF uuid serial mac host-keys instance-id cloud-instances hostname';

interface Comparison {
  /** OK, or DIFF and the facts that differ. */
  readonly verdict: string;
  /** The number of the newest file that the guest has written. */
  readonly newest: number;
  readonly details: string;
}

/** Lets the guest compare itself with what it recorded. */
async function compare(guest: DebianGuest): Promise<Comparison> {
  const { stdout, stderr } = await guest.ssh('sudo owners-day compare');
  const [, verdict = '', newest] = /^(.*) files=\d+ newest=(\d+)$/m.exec(stdout) ?? [];
  return { verdict, newest: Number(newest), details: `${stdout}${stderr}` };
}

/** Fails unless the guest finds exactly these differences and all its files are complete. Returns the newest file. */
async function expectVerdict(guest: DebianGuest, expected: string): Promise<number> {
  const { verdict, newest, details } = await compare(guest);
  assert.equal(verdict, expected, details);
  return newest;
}

const expectSame = (guest: DebianGuest) => expectVerdict(guest, 'OK');

/** Uploads the image and boots VM `web` from it; the guest records its identity and starts to write. */
async function createGuest(plane: RealPlane, owner: Owner, publicKey: string): Promise<DebianGuest> {
  await owner.virtctl('image-upload', 'pvc', 'debian', '--size=4Gi', `--image-path=${debianImage()}`);
  const flags = ['--name=web', '--memory=768Mi', '--volume-pvc=src:debian', '--efi', '--tpm', '--user=admin'];
  const vm = parseYaml(
    (await owner.virtctl('create', 'vm', ...flags, `--ssh-key=${publicKey}`)).stdout,
  ) as VirtualMachine;
  vm.spec.template.spec!.domain.machine = { type: OLD_MACHINE_TYPE };
  await plane.create(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, namespace: 'default' } });
  const guest = owner.guest('web');
  await guest.awaitBoot();
  await guest.copyIn(GUEST_SCRIPT, 'owners-day');
  await guest.ssh('sudo install owners-day /usr/local/sbin/ && sudo owners-day record');
  await expectSame(guest);
  return guest;
}

async function expectProtected(owner: Owner): Promise<void> {
  await owner.virtctl('protect', 'web', '--reason=holds the ledger');
  await assert.rejects(
    owner.kubectl('delete', 'vm', 'web'),
    /cannot be deleted.*holds the ledger.*virtctl unprotect web/s,
  );
  await assert.rejects(owner.kubectl('delete', 'pvc', 'debian'), /a disk of the protected VirtualMachine web/);
}

async function plugAndUnplug(owner: Owner, guest: DebianGuest): Promise<void> {
  await owner.kubectlWithInput(EXTRA_CLAIM, 'create', '-f', '-');
  await owner.virtctl('addvolume', 'web', '--volume-name=extra', '--bus=virtio', '--serial=EXTRA', '--wait');
  const device = '/dev/disk/by-id/virtio-EXTRA';
  await guest.waitForSsh(`test -e ${device}`);
  await guest.ssh(`sudo mkfs.ext4 -q ${device} && sudo mount ${device} /mnt && echo kept | sudo tee /mnt/file`);
  const { stderr } = await owner.virtctl('removevolume', 'web', '--volume-name=extra', '--dry-run');
  assert.match(stderr, /Warning: .*\/mnt/);
  await guest.ssh('sudo umount /mnt');
  const { stderr: later } = await owner.virtctl('removevolume', 'web', '--volume-name=extra', '--wait');
  assert.doesNotMatch(later, /Warning/);
}

async function restart(owner: Owner, guest: DebianGuest): Promise<void> {
  const before = await guest.bootId();
  assert.equal((await owner.virtctl('identity', 'diff', 'web', '--exit-code')).stdout, '');
  await owner.virtctl('restart', 'web', '--wait');
  await guest.awaitBoot({ after: before });
}

/** Starts a VM that is another machine with copies of the disks, lets it compare itself, and deletes it. */
async function expectOtherMachine(owner: Owner, name: string, verdict: string): Promise<void> {
  await owner.virtctl('start', name, '--wait');
  await owner.guest(name).awaitBoot();
  await expectVerdict(owner.guest(name), verdict);
  await owner.virtctl('stop', name, '--wait');
  await deleteVm(owner, name);
}

/** Deletes a stopped VM. Copies are protected like their source. */
async function deleteVm(owner: Owner, name: string): Promise<void> {
  await owner.virtctl('unprotect', name);
  await owner.kubectl('delete', 'vm', name);
}

/** Kills the server alone: guests and agents keep running. */
async function killServer(plane: RealPlane): Promise<void> {
  const { pid } = plane.server;
  // The agents hold its output open, so this ends with them.
  void plane.server.kill('SIGKILL');
  while (isAlive(pid)) await sleep(POLL_MS);
  await plane.restart();
}

function killAgent({ dataDir }: RealPlane, node: string): void {
  process.kill(Number(readFileSync(join(dataDir, 'nodes', node, 'server.pid'), 'utf8')), 'SIGKILL');
}

/** Kills the QEMU process of the only guest. */
function killQemu(plane: RealPlane): void {
  const [qemu, ...others] = plane.processes().filter(({ command }) => command.includes('qemu-system'));
  assert.ok(qemu !== undefined && others.length === 0);
  process.kill(qemu.pid, 'SIGKILL');
}

/** Migrates while the agent of the source is killed. Wherever the guest is then, it has not noticed. */
async function migrateWithKilledAgent(plane: RealPlane, owner: Owner): Promise<void> {
  const { status } = await plane.guest('web').vmi();
  await owner.virtctl('migrate', 'web');
  await plane.guest('web').awaitVmi('migrates', (vmi) => vmi?.status?.migrationState?.startTimestamp !== undefined);
  killAgent(plane, status?.nodeName ?? '');
  await plane.guest('web').awaitVmi('has migrated', (vmi) => vmi?.status?.migrationState?.completed === true);
}

test(
  'the guest of a VM owner stays the same machine all day, and the log stays empty',
  { timeout: TIMEOUT_MS },
  async (t) => {
    const key = makeSshKey(t);
    const first = await startRealPlane(t);
    const owner = ownerOf(first.dataDir, key);
    const step = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
      const startedAt = performance.now();
      try {
        return await work();
      } catch (error) {
        throw new Error(`Step "${what}": ${errorMessage(error)}`, { cause: error });
      } finally {
        t.diagnostic(`${what}: ${Math.round((performance.now() - startedAt) / 1000)} s`);
      }
    };

    const guest = await step('upload the image and boot it', () => createGuest(first, owner, key.publicKey));
    await step('refuse to delete the protected VM', () => expectProtected(owner));
    await step('plug in a disk and remove it', async () => {
      await plugAndUnplug(owner, guest);
      await expectSame(guest);
    });
    await step('migrate under load', async () => {
      const bootId = await guest.bootId();
      const newest = await expectSame(guest);
      await owner.virtctl('migrate', 'web', '--wait');
      assert.equal(await guest.bootId(), bootId);
      assert.ok((await expectSame(guest)) > newest, 'the guest writes');
    });
    await step('restart', async () => {
      await restart(owner, guest);
      await expectSame(guest);
    });
    await step('take a snapshot, change the machine, and restore it', async () => {
      const { stdout } = await owner.virtctl('snapshot', 'web', '--name=noon', '--wait');
      assert.match(stdout, /taken as: (.*, )?GuestAgent/);
      await guest.ssh('sudo owners-day change');
      await expectVerdict(guest, 'DIFF tpm-secret efi-variable note');
      await owner.virtctl('restore', 'web', '--snapshot=noon', '--stop', '--wait');
      await owner.virtctl('start', 'web', '--wait');
      await guest.awaitBoot();
      await expectSame(guest);
    });
    await step('change the machine type', async () => {
      const bootId = await guest.bootId();
      await owner.virtctl('update', 'machine-types', OLD_MACHINE_TYPE, '--name=web', '--restart-now', '--wait');
      await guest.awaitBoot({ after: bootId });
      await expectVerdict(guest, 'DIFF machine-type');
      await guest.ssh('sudo owners-day accept machine-type');
    });
    await step('stop', () => owner.virtctl('stop', 'web', '--wait'));
    await step('restore to a new name', async () => {
      await owner.virtctl('restore', 'web', '--snapshot=noon', '--target=old', '--wait');
      await expectOtherMachine(owner, 'old', OTHER_MACHINE);
    });
    await step('clone', async () => {
      await owner.virtctl('clone', 'web', 'copy', '--wait');
      await expectOtherMachine(owner, 'copy', OTHER_MACHINE);
    });

    const second = await startRealPlane(t);
    const newOwner = ownerOf(second.dataDir, key);
    const moved = newOwner.guest('web');
    await step('export an OVA and import it on the second plane', async () => {
      const ova = join(createTemporaryDir(t), 'web.ova');
      await owner.virtctl('export', 'ovf', 'web', '--ova', ova);
      await newOwner.virtctl('import', 'ovf', ova);
      await newOwner.virtctl('start', 'web', '--wait');
      await moved.awaitBoot();
      await expectSame(moved);
    });
    assert.equal(first.server.log(), '', 'the log of the first plane');
    assert.equal(second.server.log(), '', 'the log of the second plane');

    await step('kill the agent during a migration, and the server', async () => {
      const bootId = await moved.bootId();
      await migrateWithKilledAgent(second, newOwner);
      await killServer(second);
      assert.equal(await moved.waitForSsh('cat /proc/sys/kernel/random/boot_id'), bootId);
      await expectSame(moved);
    });
    await step('kill QEMU', async () => {
      const newest = await expectSame(moved);
      const bootId = await moved.bootId();
      killQemu(second);
      await moved.awaitBoot({ after: bootId });
      // The newest file may not have been complete.
      assert.ok((await expectSame(moved)) >= newest - 1);
    });
    await step('stop and delete', async () => {
      await newOwner.virtctl('stop', 'web', '--wait');
      for (const each of [owner, newOwner]) {
        await deleteVm(each, 'web');
        assert.equal((await each.kubectl('get', 'vm,vmi', '--output=name')).stdout, '');
      }
      const programs = [...first.processes(), ...second.processes()];
      assert.deepEqual(
        programs.filter(({ command }) => command.includes('qemu-system')),
        [],
      );
    });
    assert.equal(first.server.log(), '', 'the log of the first plane');
  },
);
