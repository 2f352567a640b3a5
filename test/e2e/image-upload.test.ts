/** A guest boots from an uploaded image: UEFI finds a kernel on the disk, and nothing comes from the node. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { parseYaml } from '#kube/yaml.ts';
import { buildFatImage } from '#test/support/fat-image.ts';
import { startRealPlane } from '#test/support/real-guests.ts';

const MIB = 1024 * 1024;
const virtctl = new URL('../../virtctl', import.meta.url).pathname;
const guestFile = (name: string) => readFileSync(new URL(`../../.cache/guest/${name}`, import.meta.url));

/** Makes an image with a kernel, which is an EFI program that the shell of the firmware starts with startup.nsh. */
function aBootableQcow2(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'bootable-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const files = {
    'vmlinuz.efi': guestFile('vmlinuz'),
    'initrd.gz': guestFile('initrd.gz'),
    'startup.nsh': Buffer.from('fs0:\r\n\\vmlinuz.efi initrd=\\initrd.gz console=ttyS0 quiet\r\n'),
  };
  writeFileSync(join(dir, 'disk.raw'), buildFatImage(40 * MIB, files));
  const image = join(dir, 'disk.qcow2');
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', join(dir, 'disk.raw'), image]);
  return image;
}

// The firmware waits five seconds, and is slow without KVM.
test('a guest boots from an uploaded qcow2', { timeout: 240_000 }, async (t) => {
  const image = aBootableQcow2(t);
  const plane = await startRealPlane(t, { nodes: 1 });
  const run = async (...args: string[]) =>
    (await promisify(execFile)(virtctl, ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), ...args])).stdout;

  assert.match(
    await run('image-upload', 'pvc', 'root', '--size=48Mi', `--image-path=${image}`),
    /completed successfully/,
  );
  const vm = parseYaml(
    await run('create', 'vm', '--name=uploaded', '--memory=256Mi', '--volume-pvc=src:root'),
  ) as VirtualMachine;
  const { domain } = vm.spec.template.spec!;
  Object.assign(domain, { firmware: { bootloader: { efi: { secureBoot: false } } } });
  vm.metadata.namespace = 'default';
  await plane.create(VIRTUAL_MACHINES, vm);

  const guest = plane.guest('uploaded');
  const { disks } = await guest.awaitBoot();
  assert.match(await guest.console(), /FS0:\\>.*vmlinuz\.efi initrd=/, 'the firmware read the kernel from the disk');
  assert.deepEqual(
    disks.map(({ sectors }) => sectors),
    [(48 * MIB) / 512],
    'the disk is as large as its claim',
  );
});
