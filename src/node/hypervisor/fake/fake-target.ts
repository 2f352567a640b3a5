/**
 * The target side of a simulated migration (migration.ts). Everything that arrives is stored before it takes effect.
 */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration, MigrationEndpoint, TransferredState } from '#node/hypervisor/migration.ts';
import { closeFakeEndpoint, readFromEndpoint, type StateEntry } from '#node/hypervisor/fake/fake-endpoints.ts';
import type { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import type { FakeHost } from '#node/hypervisor/fake/fake-host.ts';
import {
  migrationError,
  hasPersistentVariables,
  machineFingerprint,
  diskSources,
} from '#node/hypervisor/fake/fake-source.ts';

export function receive(host: FakeHost, definition: DomainDefinition, incoming: IncomingMigration): MigrationEndpoint {
  const media = diskSources(definition);
  const missing = incoming.disks.find(({ deviceId }) => !media.has(deviceId));
  if (missing !== undefined) {
    throw new HypervisorError(
      `Cannot receive domain "${definition.name}": the guest has no disk "${missing.deviceId}" with a medium`,
      { permanent: true },
    );
  }
  const memory = host.addIncomingGuest(definition, incoming);
  if (incoming.disks.length === 0) return { memory };
  return { memory, disks: JSON.stringify(incoming.disks.map(({ deviceId }) => [deviceId, media.get(deviceId)])) };
}

export function store(host: FakeHost, guest: FakeGuest, sent: TransferredState): void {
  const { record, definition } = guest;
  const { migration, door: endpoint = '', current } = record;
  if (migration?.role !== 'target')
    throw migrationError('store', guest, 'the guest was not received from another node');
  if (migration.step !== 'waiting') return;
  if (current.state !== 'incoming')
    throw migrationError('store', guest, `the guest is ${current.state}; expected incoming`);
  const transferred = readFromEndpoint(endpoint);
  if (transferred === undefined) throw migrationError('store', guest, 'no data has arrived');
  if (transferred.machine !== machineFingerprint(definition))
    throw migrationError('store', guest, 'the sent machine differs from the expected one');
  const directory = definition.state?.directory;
  if (directory !== undefined)
    host.states.replace(directory, [...transferred.kept, ...transferredVariables(guest, sent)]);
  const media = diskSources(definition);
  for (const [id, text] of transferred.disks) {
    const medium = media.get(id);
    if (medium !== undefined) host.disks?.writeDisk(medium.path, text);
  }
  guest.restoreTransferred(transferred);
  guest.recordMigrationStep({ ...migration, step: 'stored' });
  host.onStep?.(record.id, 'stored');
}

export function commitGuest(host: FakeHost, guest: FakeGuest): void {
  const { migration, current } = guest.record;
  if (migration?.role !== 'target')
    throw migrationError('commit', guest, 'the guest was not received from another node');
  if (migration.step === 'arrived') return;
  if (migration.step === 'waiting')
    throw migrationError('commit', guest, 'the migration is in step waiting; expected stored');
  if (migration.step === 'stored') {
    guest.recordMigrationStep({ ...migration, step: 'committed' });
    host.onStep?.(guest.record.id, 'committed');
  }
  // The guest belongs to this host for good, but ended before it could continue.
  if (current.state === 'ended') throw migrationError('resume', guest, `the guest has ended: ${current.how}`);
  closeFakeEndpoint(guest.record.door ?? '');
  guest.continueAfterMigration({ ...migration, step: 'arrived' });
  host.onStep?.(guest.record.id, 'arrived');
}

/** Returns the EFI variables, which the source's node agent sends. */
function transferredVariables(guest: FakeGuest, { nvram }: TransferredState): readonly StateEntry[] {
  if (!hasPersistentVariables(guest.definition)) return [];
  if (nvram === undefined) throw migrationError('store', guest, 'the EFI variables have not arrived');
  return JSON.parse(nvram.toString()) as StateEntry[];
}
