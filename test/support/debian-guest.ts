/**
 * A guest that boots a Debian image (scripts/debian-image.sh) on a real plane, used as its owner does: with virtctl,
 * kubectl and ssh. The time limit of the test bounds all waiting.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scope } from '#test/support/server-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const IMAGE = join(ROOT, '.cache/debian-image/debian.qcow2');
const RETRY_MS = 3000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const SSH_OPTIONS = ['-oStrictHostKeyChecking=no', '-oUserKnownHostsFile=/dev/null', '-oConnectTimeout=20'];

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

export interface Owner {
  /** Runs a command that must succeed. */
  virtctl(...args: string[]): Promise<Output>;
  kubectl(...args: string[]): Promise<Output>;
  /** Runs kubectl with this standard input. */
  kubectlWithInput(input: string, ...args: string[]): Promise<Output>;
  guest(name: string): DebianGuest;
}

export interface DebianGuest {
  /** Runs a command in the guest, which must succeed. */
  ssh(command: string): Promise<Output>;
  /** Repeats the command until the guest accepts connections and the output is as expected. Returns the output. */
  waitForSsh(command: string, isDone?: (output: string) => boolean): Promise<string>;
  copyIn(file: string, path: string): Promise<void>;
  /** Returns an identifier that is different after each boot. */
  bootId(): Promise<string>;
  /**
   * Waits until the guest has booted since the boot with this identifier, and cloud-init is done. Returns the identifier
   * of this boot.
   */
  awaitBoot(options?: { after?: string }): Promise<string>;
}

export interface SshKey {
  readonly file: string;
  readonly publicKey: string;
}

/** Builds the image unless it exists, and returns its file. */
export function debianImage(): string {
  execFileSync(join(ROOT, 'scripts/debian-image.sh'), [IMAGE], { stdio: ['ignore', 'ignore', 'inherit'] });
  return IMAGE;
}

/** Creates a key that is removed at the end of the test. */
export function makeSshKey(t: Scope): SshKey {
  const dir = mkdtempSync(join(tmpdir(), 'debian-guest-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  return { file, publicKey: readFileSync(`${file}.pub`, 'utf8').trim() };
}

/** Returns the commands of the owner of VMs on the plane with this data directory. The user in the guests is `admin`. */
export function ownerOf(dataDir: string, key: SshKey): Owner {
  const kubeconfig = join(dataDir, 'kubeconfig');
  const virtctl = (...args: string[]) => run(join(ROOT, 'virtctl'), ['--kubeconfig', kubeconfig, ...args]);
  const kubectl = (...args: string[]) => run('kubectl', ['--kubeconfig', kubeconfig, ...args]);
  return {
    virtctl,
    kubectl,
    kubectlWithInput: (input, ...args) => run('kubectl', ['--kubeconfig', kubeconfig, ...args], input),
    guest: (name) => debianGuest(virtctl, key, name),
  };
}

function debianGuest(virtctl: Owner['virtctl'], key: SshKey, name: string): DebianGuest {
  const flags = ['-i', key.file, ...SSH_OPTIONS.map((option) => `--local-ssh-opts=${option}`)];
  const guest: DebianGuest = {
    ssh: (command) => virtctl('ssh', `admin@vm/${name}`, ...flags, '-c', command),
    async waitForSsh(command, isDone = () => true) {
      for (;;) {
        const stdout = await guest.ssh(command).then(
          (output) => output.stdout,
          () => undefined,
        );
        if (stdout !== undefined && isDone(stdout)) return stdout;
        await sleep(RETRY_MS);
      }
    },
    async copyIn(file, path) {
      await virtctl('scp', ...flags, file, `admin@vm/${name}:${path}`);
    },
    bootId: async () => (await guest.ssh('cat /proc/sys/kernel/random/boot_id')).stdout,
    async awaitBoot({ after = '' } = {}) {
      const bootId = await guest.waitForSsh('cat /proc/sys/kernel/random/boot_id', (next) => next !== after);
      const { stdout } = await guest.ssh('cloud-init status --wait || cloud-init status --long');
      if (!stdout.includes('status: done')) throw new Error(`cloud-init in VM "${name}" has failed: ${stdout}`);
      return bootId;
    },
  };
  return guest;
}

function run(command: string, args: readonly string[], input = ''): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr });
      else reject(new Error(`Cannot run ${command} ${args.join(' ')}: ${stderr}${stdout}`, { cause: error }));
    });
    child.stdin?.on('error', () => {}).end(input);
  });
}
