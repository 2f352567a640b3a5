/**
 * The sandbox of each guest: a container that runc creates (oci-config.ts), with the guest's own user, its own view of
 * files, processes and devices, and a cgroup. Like the guest, it outlives the node agent.
 *
 *   <domain dir>/sandbox/     config.json, rootfs/ (mount points only)
 *   <node dir>/sandboxes/     runc's own records
 *   <node dir>/plugged/       plugged-files.ts
 *
 * QEMU is the first process of the sandbox: when it ends, the kernel ends swtpm and everything else in it.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '#lib/clock.ts';
import { pathExists } from '#lib/path-exists.ts';
import { guestUserOf, SHARED_DISKS_GID, type ProcessUser } from '#node/hardware/guest-user.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { findKvmGroup } from '#node/hypervisor/qemu/process/accelerator.ts';
import type { FileAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { findProcess, GUEST_ENVIRONMENT, type DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { runProgram } from '#node/hypervisor/qemu/process/run-program.ts';
import {
  buildOciConfig,
  SYSTEM_FILES,
  type CharacterDevice,
  type SandboxLimits,
  type VisibleFile,
} from '#node/sandbox/oci-config.ts';
import { describeMemoryKill } from '#node/hypervisor/qemu/sandbox/memory-limit.ts';
import { openPluggedDir, pluggedAccess, removePluggedDir } from '#node/hypervisor/qemu/sandbox/plugged-files.ts';
import type { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';

/** Linux gives these character devices the same numbers everywhere. */
const TUN: CharacterDevice = { path: '/dev/net/tun', major: 10, minor: 200 };
const KVM: CharacterDevice = { path: '/dev/kvm', major: 10, minor: 232 };
const PRIVATE_DIR = 0o700;
const PASSABLE = 0o711;
const PRIVATE_FILE = 0o600;
const HASH_LENGTH = 8;

interface SandboxStart {
  /** QEMU with its arguments, or a program that becomes QEMU. */
  readonly command: readonly string[];
  readonly files: readonly VisibleFile[];
  readonly limits: SandboxLimits;
  readonly needsKvm: boolean;
  /** The path of a network namespace; undefined: that of the host. */
  readonly networkNamespace: string | undefined;
  /** Receives standard output and standard error. */
  readonly logFd: number;
  /** Descriptors that become 3, 4 ... in the sandbox. */
  readonly fds: readonly number[];
}

export class Sandboxes {
  readonly #nodeDir: string;
  readonly #runc: string;
  readonly #clock: Clock;

  /** `domainsDir`: the directory of all domains, an absolute path. */
  constructor(domainsDir: string, { runcBinary, clock }: { readonly runcBinary: string; readonly clock: Clock }) {
    this.#nodeDir = dirname(domainsDir);
    this.#runc = runcBinary;
    this.#clock = clock;
  }

  userOf(id: string): ProcessUser {
    return guestUserOf(id);
  }

  accessOf(id: string): FileAccess {
    return pluggedAccess({ user: guestUserOf(id), path: this.#pluggedDir(id) });
  }

  /**
   * Resolves when the command runs, or with undefined if it has exited already. Replaces what an earlier attempt left.
   */
  async start(dir: DomainDir, options: SandboxStart): Promise<DetachedProcess | undefined> {
    await this.remove(dir.id);
    const bundle = join(dir.path, 'sandbox');
    await mkdir(bundle, { mode: PRIVATE_DIR });
    await mkdir(join(bundle, 'rootfs'));
    await chmod(join(bundle, 'rootfs'), PASSABLE);
    await openPluggedDir(this.#pluggedDir(dir.id));
    await writeFile(join(bundle, 'config.json'), JSON.stringify(await this.#config(dir, options)), {
      mode: PRIVATE_FILE,
    });
    const pidFile = join(bundle, 'pid');
    await this.#run(dir, bundle, pidFile, options);
    return await findProcess(Number(await readFile(pidFile, 'utf8')), this.#clock);
  }

  /** Returns the ids of all guests that have a sandbox, whether they run or not. */
  async list(): Promise<string[]> {
    return await readdir(this.#records).catch(() => []);
  }

  /** Returns why the kernel killed the guest, or undefined if it did not. Call it before `remove`. */
  async describeKill(id: string): Promise<string | undefined> {
    return await describeMemoryKill(this.#cgroup(id));
  }

  /** Ends everything in the sandbox and removes it. Does nothing if there is nothing. */
  async remove(id: string): Promise<void> {
    if (await pathExists(join(this.#records, id))) {
      await runProgram(this.#runc, ['--root', this.#records, 'delete', '--force', id]);
    }
    await removePluggedDir(this.#pluggedDir(id));
  }

  async #run(dir: DomainDir, bundle: string, pidFile: string, { logFd, fds }: SandboxStart): Promise<void> {
    const errors = join(bundle, 'runc.log');
    await rm(errors, { force: true });
    const args = ['--root', this.#records, '--log', errors, '--log-format', 'json', 'run', '--detach'];
    args.push('--bundle', bundle, '--pid-file', pidFile, '--preserve-fds', String(fds.length), dir.id);
    const child = spawn(this.#runc, args, { env: GUEST_ENVIRONMENT, stdio: ['ignore', logFd, logFd, ...fds] });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code === 0) return;
    const text = lastMessage(await readFile(errors, 'utf8').catch(() => ''));
    throw new HypervisorError(`the sandbox could not be created: ${text || `runc exited with code ${code}`}`);
  }

  async #config(dir: DomainDir, { command, files, limits, needsKvm, networkNamespace }: SandboxStart): Promise<object> {
    const visible: VisibleFile[] = [];
    for (const path of SYSTEM_FILES) if (await pathExists(path)) visible.push({ path, readonly: true });
    for (const file of files) visible.push({ ...file, isBlockDevice: (await stat(file.path)).isBlockDevice() });
    const kvmGroup = needsKvm ? await findKvmGroup() : undefined;
    return buildOciConfig({
      hostname: 'guest',
      command,
      cwd: dir.run,
      env: GUEST_ENVIRONMENT,
      user: guestUserOf(dir.id),
      groups: [SHARED_DISKS_GID, ...(kvmGroup === undefined ? [] : [kvmGroup])],
      files: visible,
      pluggedDir: this.#pluggedDir(dir.id),
      networkNamespace,
      // An interface on a bridge may be plugged later. A guest can only open the taps that belong to its user.
      devices: [TUN, ...(needsKvm ? [KVM] : [])],
      cgroup: this.#cgroup(dir.id),
      limits,
    });
  }

  /** The path in each hierarchy of cgroups. Several nodes of one machine have the same hierarchies. */
  #cgroup(id: string): string {
    const node = createHash('sha256').update(this.#nodeDir).digest('hex').slice(0, HASH_LENGTH);
    return `/selfsame/${node}-${id}`;
  }

  get #records(): string {
    return join(this.#nodeDir, 'sandboxes');
  }

  #pluggedDir(id: string): string {
    return join(this.#nodeDir, 'plugged', id);
  }
}

/** Returns the message of the last line of a JSON log, which is the reason of a failure. */
function lastMessage(log: string): string {
  const last = log.trim().split('\n').at(-1) ?? '';
  try {
    return (JSON.parse(last) as { msg?: string }).msg ?? '';
  } catch {
    return last;
  }
}
