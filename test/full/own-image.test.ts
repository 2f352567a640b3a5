/**
 * README's "Boot your own image" with a real Debian image: uploaded, booted with UEFI, TPM and cloud-init, and used over
 * ssh. Everything that is compared is what the guest itself reports.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { parseYaml } from '#kube/yaml.ts';
import { debianImage, makeSshKey, ownerOf } from '#test/support/debian-guest.ts';
import { startRealPlane } from '#test/support/real-guests.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/vm-image.yaml');

/** Prints the identity of the machine as the guest sees it, one fact per line. */
const FACTS = [
  'sudo cat /sys/class/dmi/id/product_uuid',
  'cat /etc/machine-id',
  'cat /etc/ssh/ssh_host_ed25519_key.pub',
  'cat /var/lib/cloud/data/instance-id',
  'cat /sys/class/net/e*/address',
  // The primary key of the endorsement hierarchy is the same only if the TPM is.
  'sudo tpm2_createprimary -Q -C e -G ecc -c /tmp/p.ctx && sudo tpm2_readpublic -c /tmp/p.ctx | grep ^name:',
  'sudo cat /sys/firmware/efi/efivars/Selfsame-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 | sha256sum',
  'readlink -f /sys/class/net/e*/device /sys/block/vda/device | xargs',
];

test(
  'an uploaded cloud image boots with UEFI, TPM and cloud-init, and stays the same',
  { timeout: 900_000 },
  async (t) => {
    const image = debianImage();
    const plane = await startRealPlane(t);
    const key = makeSshKey(t);
    const { virtctl, guest } = ownerOf(plane.dataDir, key);
    const { ssh, bootId, awaitBoot } = guest('web');
    const report = async () => (await ssh(FACTS.join('; '))).stdout;

    const upload = await virtctl('image-upload', 'pvc', 'debian', '--size=4Gi', `--image-path=${image}`);
    assert.match(upload.stdout, /success/);
    const flags = ['--name=web', '--memory=768Mi', '--volume-pvc=src:debian', '--efi', '--tpm', '--user=admin'];
    const { stdout } = await virtctl('create', 'vm', ...flags, `--ssh-key=${key.publicKey}`);
    const vm = parseYaml(stdout) as VirtualMachine;
    await plane.create(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, namespace: 'default' } });

    const firstBoot = await awaitBoot();
    const size = await ssh('df --output=size -m / | tail -n 1');
    assert.ok(Number(size.stdout) > 3000, 'the root file system fills the claim');
    const variable = '/sys/firmware/efi/efivars/Selfsame-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0';
    await ssh(`printf '\\x07\\0\\0\\0kept' | sudo tee ${variable} >/dev/null`);
    const before = await report();
    assert.equal(before.trim().split('\n').length, FACTS.length, before);

    await virtctl('restart', 'web');
    await awaitBoot({ after: firstBoot });
    assert.equal(await report(), before, 'after a restart');

    const secondBoot = await bootId();
    await virtctl('migrate', 'web', '--wait');
    assert.equal(await bootId(), secondBoot);
    assert.equal(await report(), before, 'after a migration');
  },
);

test('the example boots the image with UEFI, a TPM and cloud-init', { timeout: 900_000 }, async (t) => {
  const plane = await startRealPlane(t);
  const key = makeSshKey(t);
  const { virtctl, kubectlWithInput, guest } = ownerOf(plane.dataDir, key);
  await virtctl('image-upload', 'pvc', 'debian', '--size=4Gi', `--image-path=${debianImage()}`);
  const manifest = readFileSync(EXAMPLE, 'utf8');
  const placeholder = 'ssh-ed25519 AAAA... you@example';
  assert.ok(manifest.includes(placeholder));
  const { stderr } = await kubectlWithInput(manifest.replace(placeholder, key.publicKey), 'create', '-f', '-');
  assert.equal(stderr, '', 'no warning');

  const { awaitBoot, ssh } = guest('imaged');
  await awaitBoot();
  const { stdout } = await ssh('hostname; cat /sys/class/tpm/tpm0/tpm_version_major; ls -d /sys/firmware/efi/efivars');
  assert.equal(stdout, 'imaged\n2\n/sys/firmware/efi/efivars\n');
});
