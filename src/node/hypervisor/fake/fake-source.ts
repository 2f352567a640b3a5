/**
 * The source side of a simulated migration (migration.ts). A guest is sent at once, unless the host holds it in
 * transit. Its state is packed after it was paused, so that nothing it did before is lost.
 */
import type { DiskSource, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type {
  DomainMigration,
  MovingDisk,
  OutgoingMigration,
  SendOptions,
  SendProgress,
  TransferredState,
  SourceStep,
} from '#node/hypervisor/migration.ts';
import {
  sendToEndpoint,
  isEndpointOpen,
  closedEndpointError,
  onEndpointClosed,
  assertRunsOnOneHost,
  type TransferredGuest,
} from '#node/hypervisor/fake/fake-endpoints.ts';
import type { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import type { FakeHost } from '#node/hypervisor/fake/fake-host.ts';
import { EFI_PREFIX } from '#node/hypervisor/fake/fake-states.ts';

/** The real images behind simulated guests, if there are any. */
export interface RealImages {
  bytes(source: DiskSource): Promise<number>;
  move(from: DiskSource, to: DiskSource): Promise<void>;
}

interface FakeSendOptions extends SendOptions {
  readonly images?: RealImages | undefined;
  /** The error with which the send fails in transit. */
  readonly failure?: HypervisorError | undefined;
}

export async function send(
  host: FakeHost,
  guest: FakeGuest,
  outgoing: OutgoingMigration,
  options: FakeSendOptions,
): Promise<void> {
  const { record } = guest;
  const { uid, peer, endpoint, disks } = outgoing;
  const { signal, onProgress, images, failure } = options;
  signal.throwIfAborted();
  if (record.door !== undefined) assertRunsOnOneHost(record.door, host.name, false);
  record.door = endpoint.memory;
  record.goesOn = record.current.state === 'running';
  record.movingDisks = disks.map(({ deviceId }) => deviceId);
  record.handedOver = false;
  const sending: DomainMigration = { uid, peer, role: 'source', step: 'sending' };
  guest.recordMigrationStep(sending);
  host.onStep?.(record.id, 'sending');

  const totalBytes = guest.definition.memoryKib * 1024 + disks.reduce((sum, { bytes }) => sum + bytes, 0);
  onProgress?.(simulatedProgress(0, totalBytes));
  if (images !== undefined) await moveImages(images, guest.definition, outgoing);
  await waitInTransit(host, guest, signal);
  if (failure !== undefined) throw failure;
  if (!isEndpointOpen(endpoint.memory)) throw closedEndpointError(endpoint.memory);
  if (record.migration !== sending || record.current.state === 'ended')
    throw migrationError('send', guest, 'the migration was aborted');
  guest.recordMigrationStep(sending, { state: 'paused', why: 'migration' });
  onProgress?.(simulatedProgress(totalBytes, totalBytes));
}

export function switchOver(host: FakeHost, guest: FakeGuest): TransferredState {
  const { record, definition } = guest;
  const { migration, current, door: endpoint } = record;
  const isPausedByMigration = current.state === 'paused' && current.why === 'migration';
  if (migration?.role !== 'source' || migration.step !== 'sending' || !isPausedByMigration || endpoint === undefined) {
    throw migrationError('switch over', guest, 'the guest has not been sent');
  }
  const kept = [...host.states.read(definition.state?.directory ?? '')];
  sendToEndpoint(endpoint, { ...packGuest(host, guest), kept: kept.filter(([key]) => !key.startsWith(EFI_PREFIX)) });
  record.handedOver = true;
  guest.recordMigrationStep(migration);
  if (!hasPersistentVariables(definition)) return {};
  return { nvram: Buffer.from(JSON.stringify(kept.filter(([key]) => key.startsWith(EFI_PREFIX)))) };
}

export function recordMigrated(host: FakeHost, guest: FakeGuest): void {
  const { migration, handedOver } = guest.record;
  if (migration?.role === 'source' && migration.step === 'migrated') return;
  if (migration?.role !== 'source' || migration.step !== 'sending' || handedOver !== true) {
    throw migrationError('record the migration of', guest, 'the guest was not sent completely');
  }
  recordStep(host, guest, migration, 'migrated');
}

export function leave(host: FakeHost, guest: FakeGuest): void {
  const { migration } = guest.record;
  if (migration?.role === 'source' && migration.step === 'left') return;
  if (migration?.role !== 'source' || migration.step !== 'migrated')
    throw migrationError('end', guest, 'the guest has not migrated');
  guest.recordMigrationStep({ ...migration, step: 'left' }, { state: 'ended', how: 'migrated' });
  host.onStep?.(guest.record.id, 'left');
}

export function abortMigration(host: FakeHost, guest: FakeGuest): void {
  const { migration, current } = guest.record;
  if (migration?.role !== 'source' || migration.step === 'aborted') return;
  if (migration.step !== 'sending')
    throw migrationError('abort the migration of', guest, `the guest has migrated to node "${migration.peer}"`);
  guest.sending?.fail(migrationError('send', guest, 'the migration was aborted'));
  if (current.state !== 'paused' || current.why !== 'migration') recordStep(host, guest, migration, 'aborted');
  else {
    guest.continueAfterMigration({ ...migration, step: 'aborted' });
    host.onStep?.(guest.record.id, 'aborted');
  }
}

/** Returns the part of a definition that must be the same on both sides. */
export function machineFingerprint(definition: DomainDefinition): string {
  const { machine, cpu, memoryKib, firmware, acpi, smm } = definition;
  return JSON.stringify({ machine, cpu, memoryKib, firmware, acpi, smm, devices: toLearnedDevices(definition) });
}

export function hasPersistentVariables({ firmware, state }: DomainDefinition): boolean {
  return state !== undefined && firmware.loader.type === 'efi' && firmware.loader.persistent === true;
}

export function diskSources({ devices }: DomainDefinition): Map<string, DiskSource> {
  return new Map(
    devices.flatMap((device) =>
      device.type === 'disk' && device.source !== undefined ? [[device.id, device.source]] : [],
    ),
  );
}

export function migrationError(verb: string, { record }: FakeGuest, why: string): HypervisorError {
  return new HypervisorError(`Cannot ${verb} domain "${record.name}": ${why}`);
}

function recordStep(host: FakeHost, guest: FakeGuest, migration: DomainMigration, step: SourceStep): void {
  guest.recordMigrationStep({ ...migration, role: 'source', step });
  host.onStep?.(guest.record.id, step);
}

/** Resolves when the guest has been sent; rejects if the guest ends, the target gives up or the signal aborts. */
async function waitInTransit(host: FakeHost, guest: FakeGuest, signal: AbortSignal): Promise<void> {
  const endpoint = guest.record.door ?? '';
  signal.throwIfAborted();
  if (!isEndpointOpen(endpoint)) throw closedEndpointError(endpoint);
  if (!host.holdSends) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal.reason as Error);
  const stop = onEndpointClosed(endpoint, () => reject(closedEndpointError(endpoint)));
  signal.addEventListener('abort', onAbort, { once: true });
  guest.sending = { finish: resolve, fail: reject };
  try {
    await promise;
  } finally {
    guest.sending = undefined;
    signal.removeEventListener('abort', onAbort);
    stop();
  }
}

function packGuest(host: FakeHost, { record, definition }: FakeGuest): Omit<TransferredGuest, 'kept'> {
  const { memory = [], movingDisks = [], ignoresPowerButton, pressed, letGoOf, holdsDevices, agent } = record;
  const media = diskSources(definition);
  const disks = movingDisks.flatMap((id) => {
    const text = host.disks?.readDisk(media.get(id)?.path ?? '');
    return text === undefined ? [] : [[id, text] as const];
  });
  return {
    machine: machineFingerprint(definition),
    hasBooted: record.hasBooted === true || record.said !== '',
    ...{ memory, disks, ignoresPowerButton, pressed },
    ...(letGoOf !== undefined && { letGoOf }),
    ...(holdsDevices !== undefined && { holdsDevices }),
    ...(agent !== undefined && { agent }),
  };
}

/** Overlays are not copied: simulated guests do not write, so the target's new overlay is equal. */
async function moveImages(
  images: RealImages,
  definition: DomainDefinition,
  outgoing: OutgoingMigration,
): Promise<void> {
  const from = diskSources(definition);
  const to = new Map(JSON.parse(outgoing.endpoint.disks ?? '[]') as [string, DiskSource][]);
  for (const { deviceId } of outgoing.disks.filter((disk: MovingDisk) => !disk.overlay)) {
    const [source, target] = [from.get(deviceId), to.get(deviceId)];
    if (source === undefined || target === undefined) {
      throw new HypervisorError(
        `Cannot move disk "${deviceId}" of domain "${definition.name}": the disk has no medium`,
      );
    }
    await images.move(source, target);
  }
}

function simulatedProgress(processedBytes: number, totalBytes: number): SendProgress {
  const remainingBytes = totalBytes - processedBytes;
  return { processedBytes, remainingBytes, totalBytes, bytesPerSecond: totalBytes, memoryRounds: 1 };
}
