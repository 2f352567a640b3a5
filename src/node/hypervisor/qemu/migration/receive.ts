/**
 * The target side of a migration in QEMU: a QEMU that waits for a guest (`-incoming defer`), the endpoint at which the
 * guest arrives, and storing what arrived. When everything has arrived, QEMU has the EFI variables only in memory and
 * writes them when the guest continues; the TPM state is in swtpm's files, but may not be on disk yet.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskDevice, DiskSource, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration, MigrationEndpoint, MovingDisk, TransferredState } from '#node/hypervisor/migration.ts';
import { fillNodeName, formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { diskBlockdev } from '#node/hypervisor/qemu/arguments/disk.ts';
import { readBlockNodes, ignoreRefusal } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import {
  installKey,
  listenOnFreePort,
  formatEndpointAddress,
  uninstallKey,
  newSecret,
  type EndpointAddress,
  type GuestMigrationContext,
} from '#node/hypervisor/qemu/migration/migration-endpoint.ts';
import { DISKS_SOCKET, MIGRATION_SOCKET, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { syncFile, syncPersistentState, writeNvram } from '#node/hypervisor/qemu/state/move-state.ts';
import { waitUntilCompleted } from '#node/hypervisor/qemu/migration/migrate-status.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { closeRelays, relayFromPort } from '#node/hypervisor/qemu/migration/relay.ts';

const COMPLETE_MS = 60_000;

/** Opens the endpoint. QEMU listens, for the source only, when it resolves. */
export async function openEndpoint(
  qmp: QmpClient,
  context: GuestMigrationContext,
  definition: DomainDefinition,
  { disks, transport }: IncomingMigration,
): Promise<MigrationEndpoint> {
  const { dir, user, relays } = context;
  const isNetwork = transport.type === 'network';
  const capabilities = ['events', 'late-block-activate'].map((capability) => ({ capability, state: true }));
  await qmp.execute('migrate-set-capabilities', { capabilities });
  const secret = isNetwork ? newSecret() : undefined;
  const tlsCreds = secret === undefined ? undefined : await installKey(qmp, secret, { dir, user, endpoint: 'server' });
  if (tlsCreds !== undefined) await qmp.execute('migrate-set-parameters', { 'tls-creds': tlsCreds });
  const listenAt = async (socket: string, listen: (address: EndpointAddress) => Promise<unknown>) => {
    const local = await listenOnSocket(dir, socket, listen);
    if (transport.type === 'local') return local;
    return await listenOnFreePort(transport.host, async (at) => relays.push(await relayFromPort(at, dir, socket)));
  };

  const memory = await listenAt(MIGRATION_SOCKET, (address) =>
    qmp.execute('migrate-incoming', { uri: formatEndpointAddress(address) }),
  );
  if (disks.length === 0) return { memory: formatEndpointAddress(memory), ...(secret !== undefined && { secret }) };
  const nbd = await listenAt(DISKS_SOCKET, ({ type, ...data }) =>
    qmp.execute('nbd-server-start', { addr: { type, data }, ...(tlsCreds !== undefined && { 'tls-creds': tlsCreds }) }),
  );
  for (const { deviceId } of disks) {
    const [name, node] = [
      formatNodeName(deviceId),
      await ensureWritableNode(qmp, context, findDisk(definition, deviceId)),
    ];
    await qmp.execute('block-export-add', { type: 'nbd', id: name, name, 'node-name': node, writable: true });
  }
  return {
    memory: formatEndpointAddress(memory),
    disks: formatEndpointAddress(nbd),
    ...(secret !== undefined && { secret }),
  };
}

/**
 * Returns the node to which a disk's data is written. A read-only disk gets a second, writable node for the transfer.
 */
async function ensureWritableNode(
  qmp: QmpClient,
  { files }: GuestMigrationContext,
  disk: DiskWithMedium,
): Promise<string> {
  if (!disk.readonly) return formatNodeName(disk.id);
  const node = fillNodeName(disk.id);
  const filename = await files.pathOf(node, disk.source.path, { isReadOnly: false });
  const { 'node-name': _format, file, ...format } = diskBlockdev({ ...disk, readonly: false }, disk.source, filename);
  const { 'node-name': _file, ...rest } = file as Record<string, unknown>;
  // The disk's own node has the file open, too, but reads it only when the guest continues.
  await qmp.execute('blockdev-add', { ...format, 'node-name': node, file: { ...rest, locking: 'off' } });
  await files.release(node);
  return node;
}

/** Listens on a socket in QEMU's working directory: QEMU gets the bare name, the source needs the whole path. */
async function listenOnSocket(
  dir: DomainDir,
  name: string,
  listen: (address: EndpointAddress) => Promise<unknown>,
): Promise<EndpointAddress> {
  await listen({ type: 'unix', path: name });
  return { type: 'unix', path: join(dir.run, name) };
}

/** Waits for the guest and makes everything durable, independently of QEMU. */
export async function storeGuest(
  qmp: QmpClient,
  context: GuestMigrationContext,
  definition: DomainDefinition,
  disks: readonly MovingDisk[],
  { nvram, signal }: TransferredState & { signal?: AbortSignal | undefined },
): Promise<void> {
  await waitUntilCompleted(qmp, context, { timeoutMs: COMPLETE_MS, signal });
  if (disks.length > 0) await closeExports(qmp, disks);
  await Promise.all([
    writeNvram(definition, nvram),
    syncPersistentState(definition),
    ...disks.map(({ deviceId }) => syncFile(findDisk(definition, deviceId).source.path)),
  ]);
}

/** Stops the NBD server and closes the extra nodes. The data of the disks is flushed when it resolves. */
async function closeExports(qmp: QmpClient, disks: readonly MovingDisk[]): Promise<void> {
  await qmp.execute('nbd-server-stop').catch(ignoreRefusal);
  const nodes = await readBlockNodes(qmp);
  for (const { deviceId } of disks) {
    const node = fillNodeName(deviceId);
    if (nodes.has(node)) await qmp.execute('blockdev-del', { 'node-name': node });
  }
}

/** Removes what is not needed once the guest has arrived. */
export async function closeEndpoint(qmp: QmpClient, { dir, relays }: GuestMigrationContext): Promise<void> {
  closeRelays(relays);
  await uninstallKey(qmp, dir);
  for (const name of [MIGRATION_SOCKET, DISKS_SOCKET]) await rm(join(dir.run, name), { force: true });
}

type DiskWithMedium = DiskDevice & { readonly source: DiskSource };

function findDisk({ devices }: DomainDefinition, deviceId: string): DiskWithMedium {
  const disk = devices.find((device): device is DiskDevice => device.type === 'disk' && device.id === deviceId);
  if (disk?.source === undefined) throw new HypervisorError(`the guest has no disk "${deviceId}" with a medium`);
  return { ...disk, source: disk.source };
}
