/**
 * The endpoint at which the source's QEMU connects to the target's: its address, how the address is written, and its
 * key.
 *
 *   unix:<absolute path>     both QEMUs run as the same user, and only that user can use the target's socket
 *   tcp:<host>:<port>        a port of the target's agent (relay.ts); TLS between the QEMUs, with a key that is created for
 *                            this migration and known only to its two ends
 */
import { getDiffieHellman } from 'node:crypto';
import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { newUid } from '#lib/ids.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { DISKS_SOCKET, MIGRATION_SOCKET, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { ignoreRefusal } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { relayFromSocket, type Relay } from '#node/hypervisor/qemu/migration/relay.ts';
import type { WaitContext } from '#node/hypervisor/qemu/monitor/event-signal.ts';
import type { FileAccess } from '#node/hypervisor/qemu/process/file-access.ts';

/** The parts of a domain that the commands of a migration need. */
export interface GuestMigrationContext extends WaitContext {
  readonly dir: DomainDir;
  readonly user: ProcessUser | undefined;
  readonly files: FileAccess;
  /** The relays of the current migration, if it crosses hosts. */
  readonly relays: Relay[];
}

export type EndpointAddress =
  | { readonly type: 'unix'; readonly path: string }
  | { readonly type: 'inet'; readonly host: string; readonly port: string };

const FIRST_PORT = 49_152;
const PORTS = 256;
/** The kernel's limit, without the terminating byte. */
const MAX_SOCKET_PATH_BYTES = 107;
const KEY_FILE = 'keys.psk';
const PARAMETERS_FILE = 'dh-params.pem';
const KEY_USER = 'qemu';
const KEY_OBJECT = 'migration-key';
const SECRET = /^[0-9a-f]{64}$/;

export function formatEndpointAddress(address: EndpointAddress): string {
  return address.type === 'unix' ? `unix:${address.path}` : `tcp:${formatHost(address.host)}:${address.port}`;
}

/** Parses an address; throws if the text is not one. */
export function parseEndpointAddress(text: string): EndpointAddress {
  const [, path] = /^unix:(\/[^\0]+)$/.exec(text) ?? [];
  if (path !== undefined) return { type: 'unix', path };
  const [, v6, host, port] = /^tcp:(?:\[([0-9A-Fa-f:.%\w]+)\]|([\w.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const name = v6 ?? host;
  if (name === undefined || port === undefined) {
    throw new HypervisorError(`${JSON.stringify(text)} is not a migration address`, { permanent: true });
  }
  return { type: 'inet', host: name, port };
}

function formatHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** Returns a secret of 256 bits. */
export function newSecret(): string {
  return `${newUid()}${newUid()}`.replaceAll('-', '');
}

/** Installs the key in QEMU and returns the name of its object. Replaces the key of an earlier migration. */
export async function installKey(
  qmp: QmpClient,
  secret: string,
  { dir, user, endpoint }: { dir: DomainDir; user: ProcessUser | undefined; endpoint: 'client' | 'server' },
): Promise<string> {
  if (!SECRET.test(secret))
    throw new HypervisorError('the migration key has an unexpected format', { permanent: true });
  await uninstallKey(qmp, dir);
  await writeKey(dir, secret, user);
  try {
    await qmp.execute('object-add', {
      'qom-type': 'tls-creds-psk',
      id: KEY_OBJECT,
      dir: relative(dir.run, dir.key),
      endpoint,
      ...(endpoint === 'client' && { username: KEY_USER }),
    });
  } finally {
    // A server reads the file at each connection, a client only once.
    if (endpoint === 'client') await removeKeyFiles(dir);
  }
  return KEY_OBJECT;
}

/** Removes the key from QEMU and from disk. Does nothing if there is none. */
export async function uninstallKey(qmp: QmpClient, dir: DomainDir): Promise<void> {
  await qmp.execute('object-del', { id: KEY_OBJECT }).catch(ignoreRefusal);
  await removeKeyFiles(dir);
}

/** Removes the key's files. Does nothing if there are none. */
export async function removeKeyFiles(dir: DomainDir): Promise<void> {
  const names = await readdir(dir.key).catch(() => []);
  for (const name of names) await rm(join(dir.key, name), { force: true });
}

/** Writes the key's files beside run/: below run/ a compromised QEMU could redirect our writes. */
async function writeKey(dir: DomainDir, secret: string, user: ProcessUser | undefined): Promise<void> {
  await mkdir(dir.key, { recursive: true, mode: 0o711 });
  for (const [name, text] of [
    [KEY_FILE, `${KEY_USER}:${secret}\n`],
    [PARAMETERS_FILE, diffieHellmanPem()],
  ] as const) {
    const file = await open(join(dir.key, name), 'wx', 0o600);
    try {
      await file.writeFile(text);
      if (user !== undefined) await file.chown(user.uid, user.gid);
    } finally {
      await file.close();
    }
  }
}

/** Returns well-known Diffie-Hellman parameters: without them, QEMU searches for primes, which takes seconds. */
function diffieHellmanPem(): string {
  const prime = getDiffieHellman('modp14').getPrime();
  const integer = Buffer.concat([Buffer.from([0x02, 0x82, 0x01, 0x01, 0x00]), prime]);
  const both = Buffer.concat([integer, Buffer.from([0x02, 0x01, 0x02])]);
  const header = Buffer.from([0x30, 0x82, both.length >> 8, both.length & 0xff]);
  const lines =
    Buffer.concat([header, both])
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN DH PARAMETERS-----', ...lines, '-----END DH PARAMETERS-----', ''].join('\n');
}

/** Listens on the first free port. `listen` rejects with EADDRINUSE if a port is in use. */
export async function listenOnFreePort(
  host: string,
  listen: (address: { readonly host: string; readonly port: number }) => Promise<unknown>,
): Promise<EndpointAddress> {
  for (let port = FIRST_PORT; port < FIRST_PORT + PORTS; port++) {
    try {
      await listen({ host, port });
      return { type: 'inet', host, port: String(port) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  throw new HypervisorError(
    `no migration port is free on ${host}: all of ${FIRST_PORT} to ${FIRST_PORT + PORTS - 1} are in use`,
  );
}

/**
 * Returns the address as the source's QEMU can open it. A socket becomes accessible to it, by a path relative to its
 * working directory, because socket paths are short. A port of another host is reached through a relay.
 */
export async function reachableAddress(
  address: EndpointAddress,
  name: 'memory' | 'disks',
  { dir, user, files, relays }: Pick<GuestMigrationContext, 'dir' | 'user' | 'files' | 'relays'>,
): Promise<EndpointAddress> {
  if (address.type === 'inet') {
    const socket = `to-${name}.sock`;
    const to = { host: address.host, port: Number(address.port) };
    relays.push(await relayFromSocket(dir, { name: socket, user }, to));
    return { type: 'unix', path: socket };
  }
  if (!isSocketOf(dir.id, address.path))
    throw new HypervisorError(`"${address.path}" is not the socket of a migration`, { permanent: true });
  const path = await files.socketPathOf(socketAccessName(address), address.path);
  const candidates = path.startsWith('/') ? [relative(dir.run, path), path] : [path];
  const fitting = candidates.find((each) => Buffer.byteLength(each) <= MAX_SOCKET_PATH_BYTES);
  if (fitting === undefined) {
    throw new HypervisorError(`the path of the socket "${path}" is longer than ${MAX_SOCKET_PATH_BYTES} bytes`);
  }
  return { type: 'unix', path: fitting };
}

/** Returns whether the path is that of a migration socket of this domain, at any node. */
function isSocketOf(id: string, path: string): boolean {
  const [name = '', run, domain] = path.split('/').reverse();
  return [MIGRATION_SOCKET, DISKS_SOCKET].includes(name) && run === 'run' && domain === id;
}

/** Ends the access to sockets. Does nothing if there is none. */
export async function releaseSockets(files: FileAccess, addresses: readonly EndpointAddress[]): Promise<void> {
  for (const address of addresses) if (address.type === 'unix') await files.release(socketAccessName(address));
}

function socketAccessName({ path }: { path: string }): string {
  return `to-${basename(path)}`;
}
