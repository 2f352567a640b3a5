/**
 * The directory of one domain: who owns what in it, and nothing about what it means.
 *
 *   <id>/              ours, 0711          domain.json, qemu.log, swtpm.log, console.log
 *   <id>/run/          the guest user's    working directory of QEMU and swtpm: sockets, nvram.fd, tpm/
 *   <id>/key/          ours, 0711          while it moves over a network: the key, which QEMU may read
 *   <id>/volumes/      made by volumes/    disks that live as long as the domain
 *
 * What outlives the domain is elsewhere (kept-state.ts): this directory is removed with all that is in it.
 * QEMU may write only below run/: a guest that has taken it over can neither change what we remember about it nor make
 * us write through a link. Processes get relative paths, so the depth of the data directory does not matter to them.
 */
import { once } from 'node:events';
import { constants } from 'node:fs';
import { chmod, chown, copyFile, lstat, mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { HypervisorError } from '../hypervisor.ts';
import { parseRecord, type DomainRecord } from './domain-record.ts';
import type { User } from './process.ts';

/** Names below run/, as QEMU is to see them. */
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
const OWN_FILES = [RECORD, `${RECORD}.tmp`, 'qemu.log', 'swtpm.log', 'console.log', 'console.log.1', 'run', KEY];
const PASSABLE = 0o711;
const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;
/** Holds the longest command line, which comes first, and the complaint behind it. */
const MAX_LOG_READ_BYTES = 64 * 1024;
/** The uid of a VMI; never a path. */
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

type LogName = 'qemu.log' | 'swtpm.log';

export class DomainDir {
  readonly id: string;
  readonly path: string;
  readonly run: string;

  /** Throws for an id that could be a path. */
  constructor(root: string, id: string) {
    if (!ID.test(id)) {
      const message = `Cannot use ${JSON.stringify(id)} as the id of a domain: expected a uid`;
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

  /** Fresh, whatever an earlier attempt left; volumes stay. */
  async prepare(user: User | undefined): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: PASSABLE });
    if (user !== undefined) await chown(this.path, 0, 0);
    // mkdir heeds the umask, and volumes/ may have made the directory before us.
    await chmod(this.path, PASSABLE);
    await this.#removeOwnFiles();
    await mkdir(this.run, { mode: PRIVATE_DIR });
    await mkdir(join(this.run, TPM_STATE), { mode: PRIVATE_DIR });
    if (user === undefined) return;
    await chown(join(this.run, TPM_STATE), user.uid, user.gid);
    await chown(this.run, user.uid, user.gid);
  }

  async copyIntoRun(source: string, name: string, user: User | undefined): Promise<void> {
    const target = join(this.run, name);
    await copyFile(source, target, constants.COPYFILE_EXCL);
    await chmod(target, PRIVATE_FILE);
    if (user !== undefined) await chown(target, user.uid, user.gid);
  }

  /** Never half of it, whenever we are killed. `durable`: also when the power fails right afterwards. */
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

  /** `none` where nothing was ever started here. */
  async readRecord(): Promise<DomainRecord | 'none' | 'damaged'> {
    try {
      return parseRecord(await readFile(join(this.path, RECORD), 'utf8'), this.id) ?? 'damaged';
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'none' : 'damaged';
    }
  }

  /** For standard error of a process; begins anew. The caller closes it. */
  openLog(name: LogName): ReturnType<typeof open> {
    const { O_APPEND, O_CREAT, O_TRUNC, O_WRONLY } = constants;
    return open(join(this.path, name), O_APPEND | O_CREAT | O_TRUNC | O_WRONLY, PRIVATE_FILE);
  }

  /** The beginning of it: that is where a process that cannot start says why. */
  async readLog(name: LogName): Promise<string> {
    return (await this.#readPart(name, MAX_LOG_READ_BYTES, () => 0)).toString('utf8');
  }

  /** The last of it, at most so much. */
  readLogEnd(name: LogName, maxBytes: number): Promise<Buffer> {
    return this.#readPart(name, maxBytes, (size) => Math.max(0, size - maxBytes));
  }

  /** Empty where there is none. */
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
   * Connects through a descriptor of the directory, because the path of a socket may have 107 bytes only. An error of the
   * socket never goes unhandled: QEMU may end at any moment, and whoever holds the socket sees `close`.
   */
  async connect(name: string): Promise<Socket> {
    const directory = await open(this.run, constants.O_RDONLY | constants.O_DIRECTORY);
    const socket = connect(`/proc/self/fd/${directory.fd}/${name}`);
    const connected = once(socket, 'connect');
    socket.on('error', () => undefined);
    try {
      await connected;
    } finally {
      await directory.close();
    }
    if (socket.destroyed) throw socket.errored ?? new Error(`the socket ${name} was closed`);
    return socket;
  }

  /** After a start that failed: only what is ours goes, the volumes belong to who made them. */
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

/** The directories of all domains, of whatever state; what does not look like one is left alone. */
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
