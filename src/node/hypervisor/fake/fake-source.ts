/**
 * The source side of a simulated migration (migration.ts). A guest is sent at once, unless the host holds it in
 * transit. Its state is packed after it was paused, so that nothing it did before is lost.
 */
import type { DiskSource, DomainDefinition } from '#node/definition/domain-definition.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { DomainMigration, MovingDisk, Outgoing, SendOptions, SendProgress, Sent, SourceStep } from '../migration.ts';
import { deliver, isOpen, nobodyThere, onClosed, watchRunning, type Luggage } from './fake-doors.ts';
import type { FakeGuest } from './fake-guest.ts';
import type { FakeHost } from './fake-host.ts';
import { EFI_PREFIX } from './fake-states.ts';

/** The real images behind simulated guests, if there are any. */
export interface RealImages {
  bytes(source: DiskSource): Promise<number>;
  move(from: DiskSource, to: DiskSource): Promise<void>;
}

export interface FakeSendOptions extends SendOptions {
  readonly images?: RealImages | undefined;
  /** The error with which the send fails in transit. */
  readonly failure?: HypervisorError | undefined;
}

export async function send(host: FakeHost, guest: FakeGuest, outgoing: Outgoing, options: FakeSendOptions): Promise<void> {
  const { record } = guest;
  const { uid, peer, door, disks } = outgoing;
  const { signal, onProgress, images, failure } = options;
  signal.throwIfAborted();
  if (record.door !== undefined) watchRunning(record.door, host.name, false);
  record.door = door.memory;
  record.goesOn = record.current.state === 'running';
  record.movingDisks = disks.map(({ deviceId }) => deviceId);
  record.handedOver = false;
  const sending: DomainMigration = { uid, peer, role: 'source', step: 'sending' };
  guest.step(sending);
  host.onStep?.(record.id, 'sending');

  const totalBytes = guest.definition.memoryKib * 1024 + disks.reduce((sum, { bytes }) => sum + bytes, 0);
  onProgress?.(progressOf(0, totalBytes));
  if (images !== undefined) await moveImages(images, guest.definition, outgoing);
  await onItsWay(host, guest, signal);
  if (failure !== undefined) throw failure;
  if (!isOpen(door.memory)) throw nobodyThere(door.memory);
  if (record.migration !== sending || record.current.state === 'ended')
    throw cannot('send', guest, 'the migration was aborted');
  guest.step(sending, { state: 'paused', why: 'migration' });
  onProgress?.(progressOf(totalBytes, totalBytes));
}

export function switchOver(host: FakeHost, guest: FakeGuest): Sent {
  const { record, definition } = guest;
  const { migration, current, door } = record;
  const standsStill = current.state === 'paused' && current.why === 'migration';
  if (migration?.role !== 'source' || migration.step !== 'sending' || !standsStill || door === undefined) {
    throw cannot('switch over', guest, 'the guest has not been sent');
  }
  const kept = [...host.states.of(definition.state?.directory ?? '')];
  deliver(door, { ...packed(host, guest), kept: kept.filter(([key]) => !key.startsWith(EFI_PREFIX)) });
  record.handedOver = true;
  guest.step(migration);
  if (!keepsVariables(definition)) return {};
  return { nvram: Buffer.from(JSON.stringify(kept.filter(([key]) => key.startsWith(EFI_PREFIX)))) };
}

export function recordMigrated(host: FakeHost, guest: FakeGuest): void {
  const { migration, handedOver } = guest.record;
  if (migration?.role === 'source' && migration.step === 'migrated') return;
  if (migration?.role !== 'source' || migration.step !== 'sending' || handedOver !== true) {
    throw cannot('record the migration of', guest, 'the guest was not sent completely');
  }
  stepTo(host, guest, migration, 'migrated');
}

export function leave(host: FakeHost, guest: FakeGuest): void {
  const { migration } = guest.record;
  if (migration?.role === 'source' && migration.step === 'left') return;
  if (migration?.role !== 'source' || migration.step !== 'migrated')
    throw cannot('end', guest, 'the guest has not migrated');
  guest.step({ ...migration, step: 'left' }, { state: 'ended', how: 'migrated' });
  host.onStep?.(guest.record.id, 'left');
}

export function takeBack(host: FakeHost, guest: FakeGuest): void {
  const { migration, current } = guest.record;
  if (migration?.role !== 'source' || migration.step === 'aborted') return;
  if (migration.step !== 'sending')
    throw cannot('abort the migration of', guest, `the guest has migrated to node "${migration.peer}"`);
  guest.sending?.fail(cannot('send', guest, 'the migration was aborted'));
  if (current.state !== 'paused' || current.why !== 'migration') stepTo(host, guest, migration, 'aborted');
  else {
    guest.goOn({ ...migration, step: 'aborted' });
    host.onStep?.(guest.record.id, 'aborted');
  }
}

/** Returns the part of a definition that must be the same on both sides. */
export function machineOf(definition: DomainDefinition): string {
  const { machine, cpu, memoryKib, firmware, acpi, smm } = definition;
  return JSON.stringify({ machine, cpu, memoryKib, firmware, acpi, smm, devices: learnedFrom(definition) });
}

export function keepsVariables({ firmware, state }: DomainDefinition): boolean {
  return state !== undefined && firmware.loader.type === 'efi' && firmware.loader.persistent === true;
}

export function mediaOf({ devices }: DomainDefinition): Map<string, DiskSource> {
  return new Map(
    devices.flatMap((device) =>
      device.type === 'disk' && device.source !== undefined ? [[device.id, device.source]] : [],
    ),
  );
}

export function cannot(verb: string, { record }: FakeGuest, why: string): HypervisorError {
  return new HypervisorError(`Cannot ${verb} domain "${record.name}": ${why}`);
}

function stepTo(host: FakeHost, guest: FakeGuest, migration: DomainMigration, step: SourceStep): void {
  guest.step({ ...migration, role: 'source', step });
  host.onStep?.(guest.record.id, step);
}

/** Resolves when the guest has been sent; rejects if the guest ends, the target gives up or the signal aborts. */
async function onItsWay(host: FakeHost, guest: FakeGuest, signal: AbortSignal): Promise<void> {
  const door = guest.record.door ?? '';
  signal.throwIfAborted();
  if (!isOpen(door)) throw nobodyThere(door);
  if (!host.holdSends) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal.reason as Error);
  const stop = onClosed(door, () => reject(nobodyThere(door)));
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

function packed(host: FakeHost, { record, definition }: FakeGuest): Omit<Luggage, 'kept'> {
  const { memory = [], movingDisks = [], ignoresPowerButton, pressed, letGoOf, holdsDevices, agent } = record;
  const media = mediaOf(definition);
  const disks = movingDisks.flatMap((id) => {
    const text = host.disks?.readDisk(media.get(id)?.path ?? '');
    return text === undefined ? [] : [[id, text] as const];
  });
  return {
    machine: machineOf(definition),
    hasBooted: record.hasBooted === true || record.said !== '',
    ...{ memory, disks, ignoresPowerButton, pressed },
    ...(letGoOf !== undefined && { letGoOf }),
    ...(holdsDevices !== undefined && { holdsDevices }),
    ...(agent !== undefined && { agent }),
  };
}

/** Overlays are not copied: simulated guests do not write, so the target's new overlay is equal. */
async function moveImages(images: RealImages, definition: DomainDefinition, outgoing: Outgoing): Promise<void> {
  const from = mediaOf(definition);
  const to = new Map(JSON.parse(outgoing.door.disks ?? '[]') as [string, DiskSource][]);
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

function progressOf(processedBytes: number, totalBytes: number): SendProgress {
  const remainingBytes = totalBytes - processedBytes;
  return { processedBytes, remainingBytes, totalBytes, bytesPerSecond: totalBytes, memoryRounds: 1 };
}
