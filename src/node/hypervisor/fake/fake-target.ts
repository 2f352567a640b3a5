/**
 * The target side of a simulated migration (migration.ts). Everything that arrives is stored before it takes effect.
 */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { Incoming, MigrationDoor, Sent } from '../migration.ts';
import { closeDoor, collect, type Entry } from './fake-doors.ts';
import type { FakeGuest } from './fake-guest.ts';
import type { FakeHost } from './fake-host.ts';
import { cannot, keepsVariables, machineOf, mediaOf } from './fake-source.ts';

export function receive(host: FakeHost, definition: DomainDefinition, incoming: Incoming): MigrationDoor {
  const media = mediaOf(definition);
  const missing = incoming.disks.find(({ deviceId }) => !media.has(deviceId));
  if (missing !== undefined) {
    throw new HypervisorError(
      `Cannot receive domain "${definition.name}": the guest has no disk "${missing.deviceId}" with a medium`,
      { permanent: true },
    );
  }
  const memory = host.receive(definition, incoming);
  if (incoming.disks.length === 0) return { memory };
  return { memory, disks: JSON.stringify(incoming.disks.map(({ deviceId }) => [deviceId, media.get(deviceId)])) };
}

export function store(host: FakeHost, guest: FakeGuest, sent: Sent): void {
  const { record, definition } = guest;
  const { migration, door = '', current } = record;
  if (migration?.role !== 'target') throw cannot('store', guest, 'the guest was not received from another node');
  if (migration.step !== 'waiting') return;
  if (current.state !== 'incoming') throw cannot('store', guest, `the guest is ${current.state}; expected incoming`);
  const luggage = collect(door);
  if (luggage === undefined) throw cannot('store', guest, 'no data has arrived');
  if (luggage.machine !== machineOf(definition))
    throw cannot('store', guest, 'the sent machine differs from the expected one');
  const directory = definition.state?.directory;
  if (directory !== undefined) host.states.replace(directory, [...luggage.kept, ...variablesOf(guest, sent)]);
  const media = mediaOf(definition);
  for (const [id, text] of luggage.disks) {
    const medium = media.get(id);
    if (medium !== undefined) host.disks?.writeDisk(medium.path, text);
  }
  guest.unpack(luggage);
  guest.step({ ...migration, step: 'stored' });
  host.onStep?.(record.id, 'stored');
}

export function commit(host: FakeHost, guest: FakeGuest): void {
  const { migration, current } = guest.record;
  if (migration?.role !== 'target') throw cannot('commit', guest, 'the guest was not received from another node');
  if (migration.step === 'arrived') return;
  if (migration.step === 'waiting') throw cannot('commit', guest, 'the migration is in step waiting; expected stored');
  if (migration.step === 'stored') {
    guest.step({ ...migration, step: 'committed' });
    host.onStep?.(guest.record.id, 'committed');
  }
  // The guest belongs to this host for good, but ended before it could continue.
  if (current.state === 'ended') throw cannot('resume', guest, `the guest has ended: ${current.how}`);
  closeDoor(guest.record.door ?? '');
  guest.goOn({ ...migration, step: 'arrived' });
  host.onStep?.(guest.record.id, 'arrived');
}

/** Returns the EFI variables, which the source's node agent sends. */
function variablesOf(guest: FakeGuest, { nvram }: Sent): readonly Entry[] {
  if (!keepsVariables(guest.definition)) return [];
  if (nvram === undefined) throw cannot('store', guest, 'the EFI variables have not arrived');
  return JSON.parse(nvram.toString()) as Entry[];
}
