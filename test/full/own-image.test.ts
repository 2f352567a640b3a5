/**
 * README's "Boot your own image" with a real Debian image: uploaded, booted with UEFI, TPM and cloud-init, and used over
 * ssh. Everything that is compared is what the guest itself reports.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { parseYaml } from '#kube/yaml.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';

const ROOT = join(import.meta.dirname, '../..');
const IMAGE = join(ROOT, '.cache/debian-image/debian.qcow2');
const RETRY_MS = 3000;

/** Prints the identity of the machine as the guest sees it, one fact per line. */
const REPORT = [
  'sudo cat /sys/class/dmi/id/product_uuid',
  'cat /etc/machine-id',
  'cat /etc/ssh/ssh_host_ed25519_key.pub',
  'cat /var/lib/cloud/data/instance-id',
  'cat /sys/class/net/e*/address',
  // The handle is the same only if the TPM is.
  'sudo tpm2_createprimary -Q -c /tmp/p.ctx -u 1 2>/dev/null; sudo tpm2_readpublic -c /tmp/p.ctx 2>/dev/null | sha256sum',
  'sudo cat /sys/firmware/efi/efivars/Selfsame-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 | sha256sum',
  'readlink -f /sys/class/net/e*/device /sys/block/vda/device | tr "\\n" " "; echo',
].join('; ');

function makeKey(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'own-image-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const key = join(dir, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  return key;
}

function commandsOf(plane: RealPlane, key: string) {
  const virtctl = async (...args: string[]) =>
    (
      await promisify(execFile)(join(ROOT, 'virtctl'), ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), ...args], {
        maxBuffer: 16 * 1024 * 1024,
      })
    ).stdout;
  const ssh = (command: string) => {
    const options = ['-oStrictHostKeyChecking=no', '-oUserKnownHostsFile=/dev/null', '-oConnectTimeout=20'];
    const flags = options.map((option) => `--local-ssh-opts=${option}`);
    return virtctl('ssh', 'admin@vm/web', '-i', key, ...flags, '-c', command);
  };
  /** Retries until the guest accepts connections; the time limit of the test applies. */
  const waitForSsh = async (command: string, isDone: (output: string) => boolean = () => true): Promise<string> => {
    for (;;) {
      const output = await ssh(command).catch(() => undefined);
      if (output !== undefined && isDone(output)) return output;
      await sleep(RETRY_MS);
    }
  };
  return { virtctl, ssh, waitForSsh };
}

test(
  'an uploaded cloud image boots with UEFI, TPM and cloud-init, and stays the same',
  { timeout: 900_000 },
  async (t) => {
    execFileSync(join(ROOT, 'scripts/debian-image.sh'), [IMAGE], { stdio: ['ignore', 'ignore', 'inherit'] });
    const plane = await startRealPlane(t);
    const key = makeKey(t);
    const { virtctl, ssh, waitForSsh } = commandsOf(plane, key);

    assert.match(await virtctl('image-upload', 'pvc', 'debian', '--size=4Gi', `--image-path=${IMAGE}`), /success/);
    const publicKey = readFileSync(`${key}.pub`, 'utf8').trim();
    const flags = ['--name=web', '--memory=768Mi', '--volume-pvc=src:debian', '--efi', '--tpm', '--user=admin'];
    const vm = parseYaml(await virtctl('create', 'vm', ...flags, `--ssh-key=${publicKey}`)) as VirtualMachine;
    await plane.create(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, namespace: 'default' } });

    const status = await waitForSsh('cloud-init status --wait || cloud-init status --long');
    assert.match(status, /status: done/);
    assert.ok(Number(await ssh('df --output=size -m / | tail -n 1')) > 3000, 'the root file system fills the claim');
    const variable = '/sys/firmware/efi/efivars/Selfsame-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0';
    await ssh(`printf '\\x07\\0\\0\\0kept' | sudo tee ${variable} >/dev/null`);
    const before = await ssh(REPORT);
    assert.equal(before.trim().split('\n').length, REPORT.split('; ').length - 2, before);

    const bootId = await ssh('cat /proc/sys/kernel/random/boot_id');
    await virtctl('restart', 'web');
    await waitForSsh('cat /proc/sys/kernel/random/boot_id', (next) => next !== bootId);
    assert.equal(await ssh(REPORT), before, 'after a restart');

    await virtctl('migrate', 'web', '--wait');
    assert.equal(await ssh(REPORT), before, 'after a migration');
  },
);
