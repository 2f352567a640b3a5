/**
 * The directory of one domain: which files it has and who owns them. Their meaning belongs to other modules.
 *
 *   <id>/              ours, 0711          domain.json, qemu.log, swtpm.log, console.log
 *   <id>/run/          the guest's user's  working directory of QEMU and swtpm: sockets, nvram.fd, tpm/
 *   <id>/key/          ours, 0711          during a migration over the network: the key, which QEMU may read
 *   <id>/sandbox/      ours, 0700          how the sandbox is built (sandbox/sandbox.ts)
 *   <id>/volumes/      made by volumes/    disks that live as long as the domain
 *
 * Persistent state is elsewhere (persistent-state.ts), because this directory is removed with the domain. QEMU can
 * write only below run/: a guest that has compromised it can neither change our records nor make us write through a
 * link. Processes get relative paths, so the depth of the data directory does not matter to them.
 */
import { once } from 'node:events';
import { constants } from 'node:fs';
import { chmod, chown, copyFile, lstat, mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { connect, type IpcNetConnectOpts, type Socket } from 'node:net';
import { join } from 'node:path';
import type { ReadableOptions } from 'node:stream';
import { openPath } from '#lib/open-path.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { parseRecord, type DomainRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';

/** Names below run/, as QEMU sees them. */
export const QMP_SOCKET = 'qmp.sock';
export const SERIAL_SOCKET = 'serial.sock';
export const DISPLAY_SOCKET = 'vnc.sock';
export const AGENT_SOCKET = 'agent.sock';
export const TPM_SOCKET = 'tpm.sock';
export const TPM_STATE = 'tpm';
export const NVRAM = 'nvram.fd';
export const MIGRATION_SOCKET = 'migration.sock';
export const DISKS_SOCKET = 'disks.sock';

const RECORD = 'domain.json';
const KEY = 'key';
const OWN_FILES = [
  RECORD,
  `${RECORD}.tmp`,
  'qemu.log',
  'swtpm.log',
  'console.log',
  'console.log.1',
  'run',
  KEY,
  'sandbox',
];
const PASSABLE = 0o711;
const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;
/** Enough for the longest command line, which comes first, and for the error after it. */
const MAX_LOG_READ_BYTES = 64 * 1024;
/** The uid of a VMI. Anything else could be a path. */
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

type LogName = 'qemu.log' | 'swtpm.log';

export class DomainDir {
  readonly id: string;
  readonly path: string;
  readonly run: string;

  /** Throws for an id that could be a path. */
  constructor(root: string, id: string) {
    if (!ID.test(id)) {
      const message = `Cannot use ${JSON.stringify(id)} as a domain id: expected a uid`;
      throw new HypervisorError(message, { permanent: true });
    }
    this.id = id;
    this.path = join(root, id);
    this.run = join(this.path, 'run');
  }

  get consoleLog(): string {
    return join(this.path, 'console.log');
  }

  get key(): string {
    return join(this.path, KEY);
  }

  get logs(): string[] {
    return [join(this.path, 'qemu.log'), join(this.path, 'swtpm.log')];
  }

  /** Creates empty directories and removes what an earlier attempt left, except for volumes. */
  async prepare(user: ProcessUser | undefined): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: PASSABLE });
    if (user !== undefined) await chown(this.path, 0, 0);
    // mkdir applies the umask, and volumes/ may have created the directory before.
    await chmod(this.path, PASSABLE);
    await this.#removeOwnFiles();
    await mkdir(this.run, { mode: PRIVATE_DIR });
    await mkdir(join(this.run, TPM_STATE), { mode: PRIVATE_DIR });
    // Visible in the sandbox from its start.
    await mkdir(this.key, { mode: PASSABLE });
    if (user === undefined) return;
    await chown(join(this.run, TPM_STATE), user.uid, user.gid);
    await chown(this.run, user.uid, user.gid);
  }

  async copyIntoRun(source: string, name: string, user: ProcessUser | undefined): Promise<void> {
    const target = join(this.run, name);
    await copyFile(source, target, constants.COPYFILE_EXCL);
    await chmod(target, PRIVATE_FILE);
    if (user !== undefined) await chown(target, user.uid, user.gid);
  }

  /**
   * Replaces the record atomically, even if this process is killed. `durable`: also if the power fails right
   * afterwards.
   */
  async writeRecord(record: DomainRecord, { durable }: { durable: boolean }): Promise<void> {
    const temporary = join(this.path, `${RECORD}.tmp`);
    const file = await open(temporary, 'w', PRIVATE_FILE);
    try {
      await file.writeFile(JSON.stringify(record));
      if (durable) await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(this.path, RECORD));
    if (durable) await syncDirectory(this.path);
  }

  /** Returns 'none' if nothing was ever started here. */
  async readRecord(): Promise<DomainRecord | 'none' | 'damaged'> {
    try {
      return parseRecord(await readFile(join(this.path, RECORD), 'utf8'), this.id) ?? 'damaged';
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'none' : 'damaged';
    }
  }

  /** Opens an empty log for a process's output. The caller closes it. */
  openLog(name: LogName): ReturnType<typeof open> {
    const { O_APPEND, O_CREAT, O_TRUNC, O_WRONLY } = constants;
    return open(join(this.path, name), O_APPEND | O_CREAT | O_TRUNC | O_WRONLY, PRIVATE_FILE);
  }

  /** Reads the beginning of a log, where a process that cannot start reports why. */
  async readLog(name: LogName): Promise<string> {
    return (await this.#readPart(name, MAX_LOG_READ_BYTES, () => 0)).toString('utf8');
  }

  /** Reads the end of a log, at most `maxBytes`. */
  readLogEnd(name: LogName, maxBytes: number): Promise<Buffer> {
    return this.#readPart(name, maxBytes, (size) => Math.max(0, size - maxBytes));
  }

  /** Returns an empty buffer if there is no log. */
  async #readPart(name: LogName, maxBytes: number, from: (size: number) => number): Promise<Buffer> {
    const file = await open(join(this.path, name), 'r').catch(() => undefined);
    if (file === undefined) return Buffer.alloc(0);
    try {
      const { size } = await file.stat();
      const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(maxBytes, size)), 0, null, from(size));
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  async hasSocket(name: string): Promise<boolean> {
    return lstat(join(this.run, name)).then(
      (stats) => stats.isSocket(),
      () => false,
    );
  }

  /**
   * Connects to a socket of QEMU or swtpm. A guest that has compromised them could put a link there, or a socket that is
   * not its own, and its console would lead to somebody else. So the socket itself is opened and checked, and then used
   * through the descriptor; a socket path has at most 107 bytes, too. Errors of the socket are always handled: QEMU may end
   * at any moment, and the owner of the socket sees `close`. `readAheadBytes`: how much is read before somebody wants it.
   */
  async connect(name: string, { readAheadBytes }: { readonly readAheadBytes?: number } = {}): Promise<Socket> {
    const { uid } = await lstat(this.run);
    const file = await openPath(join(this.run, name));
    try {
      const found = await file.stat();
      if (!found.isSocket() || found.uid !== uid) throw new Error(`${name} is not a socket of the guest`);
      const options: IpcNetConnectOpts & ReadableOptions = { path: `/proc/self/fd/${file.fd}` };
      if (readAheadBytes !== undefined) options.highWaterMark = readAheadBytes;
      const socket = connect(options);
      const connected = once(socket, 'connect');
      socket.on('error', () => undefined);
      await connected;
      if (socket.destroyed) throw socket.errored ?? new Error(`the socket ${name} was closed`);
      return socket;
    } finally {
      await file.close();
    }
  }

  /** Cleans up after a failed start: removes our own files; volumes belong to volumes/. */
  async clear(): Promise<void> {
    await this.#removeOwnFiles();
    await rmdir(this.path).catch(() => undefined);
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  async #removeOwnFiles(): Promise<void> {
    for (const name of OWN_FILES) await rm(join(this.path, name), { recursive: true, force: true });
  }
}

/** Returns the directories of all domains in any state. Ignores other entries. */
export async function listDomainDirs(root: string): Promise<DomainDir[]> {
  await mkdir(root, { recursive: true, mode: PASSABLE });
  await chmod(root, PASSABLE);
  const entries = await readdir(root, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && ID.test(entry.name))
    .map((entry) => new DomainDir(root, entry.name));
}

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
