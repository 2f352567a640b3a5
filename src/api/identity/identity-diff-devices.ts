/** Predicts which devices will be added, removed, moved or changed at the next start of a guest. Pure. */
import { chipsetOf, type Chipset } from '#api/devices/chipset.ts';
import { formatAddress, driveBusOf, isSamePci } from '#api/devices/device-address.ts';
import type { Disk } from '#api/domain/disk.ts';
import { isFixedDeviceId } from '#api/devices/fixed-devices.ts';
import { NOT_PRESENT, type LastSeen, type Difference } from '#api/identity/identity-last-seen.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { nextDevices, SCSI, USB, type NextDevice } from '#api/identity/next-devices.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { AGENT_PORT_NAME, asksForAgent } from '#api/devices/agent-channel.ts';

const ASSIGNED_AT_START = 'assigned at the start';
const UNPLUGGED = 'unplugged';
const TEMPLATE = 'the template of the VM changed';

/** Types of rows that are removed when the template no longer asks for them; other rows stay in the record. */
const REMOVABLE: ReadonlySet<string> = new Set(['disk', 'interface', 'rng', 'balloon']);

/** Types for which another model is other hardware. */
const HAS_MODELS: ReadonlySet<string> = new Set(['interface', 'video', 'sound', 'watchdog']);

export function deviceDifferences(next: VmiSpec, seen: LastSeen, machine: string): Difference[] {
  const [before, after] = [chipsetOf(seen.machine), chipsetOf(machine)];
  const moves = before !== undefined && after !== undefined && before !== after;
  const devices = nextDevices(next, after);
  const last = seen.devices ?? rowsOf(seen.spec, before ?? after);
  const ids = new Set(devices.map(({ id }) => id));
  return [
    ...devices.flatMap((device) => deviceDifference(device, { seen, last, changesChipset: moves })),
    ...[...last.values()].flatMap((row) => (ids.has(row.id) ? [] : removedDifference(row, seen))),
    ...removedByInstance(next, seen, after),
    ...diskDifferences(next, seen.spec),
  ];
}

interface Context {
  readonly seen: LastSeen;
  readonly last: ReadonlyMap<string, LearnedDevice>;
  /** True if the machine gets another chipset. */
  readonly changesChipset: boolean;
}

function deviceDifference(device: NextDevice, { seen, last, changesChipset }: Context): Difference[] {
  const { id, plugged, pin, onlyKept } = device;
  const lastRow = last.get(id);
  const wasPlugged = lastRow !== undefined && lastRow.plugged !== false;
  if (!plugged)
    return wasPlugged ? [{ what: id, from: describeRow(lastRow), to: UNPLUGGED, why: unplugReason(device) }] : [];
  const isOtherKind = lastRow !== undefined && !isSameKind(lastRow, device);
  const kept =
    changesChipset || (lastRow !== undefined && !isSameBus(lastRow, device))
      ? ''
      : formatAddress(seen.rows.get(id) ?? {});
  const place = pin ?? (kept === '' ? ASSIGNED_AT_START : kept);
  const to = hasNoAddress(device) ? device.device : `${kindText(device)}, address ${place}`;
  if (lastRow === undefined && onlyKept === true) return [];
  if (lastRow === undefined) return [{ what: id, from: NOT_PRESENT, to, why: addedReason(device) }];
  if (!wasPlugged) return [{ what: id, from: UNPLUGGED, to, why: 'the template plugs it in' }];
  if (isOtherKind) return [{ what: id, from: describeRow(lastRow), to, why: TEMPLATE }];
  const from = formatAddress(lastRow);
  // Without a recorded address there is nothing to compare.
  if (changesChipset || from === '' || hasNoAddress(device)) return [];
  if (pin !== undefined && !isSamePci(pin, from)) {
    return [{ what: id, from, to: pin, why: 'the template sets this address' }];
  }
  if (pin === undefined && kept !== from) {
    const why = 'it was detached or unplugged in the meantime, and its address was released';
    return [{ what: id, from, to: place, why }];
  }
  return [];
}

function unplugReason({ type }: NextDevice): string {
  return type === 'disk' ? 'the template unplugs it; its address is released' : 'the template sets its state to absent';
}

function addedReason({ id, type }: NextDevice): string {
  if (id === SCSI.id) return 'a disk on the scsi bus needs it';
  if (id === USB.id) return 'a device on the usb bus needs it';
  return type === 'disk' || type === 'interface' ? 'new in the template' : TEMPLATE;
}

function removedDifference(row: LearnedDevice, { ephemeral }: LastSeen): Difference[] {
  if ((!REMOVABLE.has(row.type) && !isFixedDeviceId(row.id)) || row.plugged === false) return [];
  const isForThisRun = row.type === 'disk' && ephemeral.has(row.id.replace(/^disk-/, ''));
  const why = isForThisRun ? 'it was plugged in for this run only' : 'the template no longer has it';
  return [{ what: row.id, from: describeRow(row), to: NOT_PRESENT, why }];
}

/** Compares devices whose rows are never removed: only the instance shows whether the guest has them. */
function removedByInstance(next: VmiSpec, { spec, devices }: LastSeen, chipset: Chipset | undefined): Difference[] {
  if (spec === undefined || devices === undefined) return [];
  const ids = new Set(nextDevices(next, chipset).map(({ id }) => id));
  return nextDevices(spec, chipset)
    .filter(({ id, type }) => (type === 'tpm' || type === 'console') && !ids.has(id))
    .map(({ id, device }) => ({ what: id, from: device, to: NOT_PRESENT, why: TEMPLATE }));
}

/** Compares properties of disks that only the specs contain. */
function diskDifferences(next: VmiSpec, last: VmiSpec | undefined): Difference[] {
  if (last === undefined) return [];
  const before = new Map(last.domain.devices?.disks?.map((disk) => [disk.name, disk]));
  return (next.domain.devices?.disks ?? []).flatMap((disk) => {
    const lastDisk = before.get(disk.name);
    if (lastDisk === undefined || disk.plugged === false || lastDisk.plugged === false) return [];
    const facts: [string, string, string][] = [
      ['serial', lastDisk.serial || 'none', disk.serial || 'none'],
      ['access', accessText(lastDisk), accessText(disk)],
      ['content', contentText(last, disk.name), contentText(next, disk.name)],
    ];
    return facts.flatMap(([fact, from, to]) =>
      from === to ? [] : [{ what: `${fact} of disk-${disk.name}`, from, to, why: TEMPLATE }],
    );
  });
}

function accessText({ disk, floppy, lun, cdrom }: Disk): string {
  return cdrom !== undefined || (disk ?? floppy ?? lun)?.readonly === true ? 'read-only' : 'read-write';
}

function contentText({ volumes = [] }: VmiSpec, name: string): string {
  const { name: _, ...source } = volumes.find((volume) => volume.name === name) ?? { name };
  const { claimName } = source.persistentVolumeClaim ?? {};
  if (claimName !== undefined) return `claim ${claimName}`;
  // The content of cloud-init may be confidential: only its kind is shown.
  return deepEqual(source, {}) ? 'none' : Object.keys(source).join(', ');
}

function isSameKind(lastRow: LearnedDevice, { type, device, bus, onlyKept }: NextDevice): boolean {
  if (type === 'disk' || type === 'input') return lastRow.device === device && isSameBus(lastRow, { bus });
  // Only the type of a removed row is known.
  if (onlyKept === true) return true;
  return !HAS_MODELS.has(type) || lastRow.device === device || lastRow.device === type;
}

/** Reports whether both are on the same bus, or one bus is unknown. */
function isSameBus(lastRow: LearnedDevice, { bus }: { readonly bus?: string | undefined }): boolean {
  const lastBus = driveBusOf(lastRow) || (lastRow.address?.['type'] === 'pci' ? 'virtio' : '');
  return bus === undefined || lastBus === '' || lastBus === bus;
}

function kindText({ type, device, bus }: NextDevice): string {
  return type === 'disk' ? `${device} on ${bus}` : device;
}

function describeRow(row: LearnedDevice): string {
  const place = formatAddress(row);
  const bus = driveBusOf(row);
  const kind = row.type === 'disk' && bus !== '' ? `${row.device} on ${bus}` : row.device;
  return place === '' ? kind : `${kind}, address ${place}`;
}

function hasNoAddress({ type }: NextDevice): boolean {
  return type === 'tpm' || type === 'console';
}

/** Returns the devices that the instance asked for, as rows; used until the devices were read. */
function rowsOf(spec: VmiSpec | undefined, chipset: Chipset | undefined): ReadonlyMap<string, LearnedDevice> {
  // Guests get the SCSI controller at their first start, whether or not a disk needs it.
  const devices = spec === undefined ? [] : [...nextDevices(spec, chipset), { ...SCSI, plugged: true }];
  return new Map(
    devices.map(({ id, type, device, bus, plugged }) => [
      id,
      { id, type, device, ...(bus && { specParams: { bus } }), ...(!plugged && { plugged }) },
    ]),
  );
}

const REQUESTED = 'the template asks for the guest agent, by a probe or an annotation';
const IMPORTED = 'an imported VM that has the controller gets the port at its first start here';

/** `next` is the template from which the next instance is created. */
export function agentDifferences(
  next: Parameters<typeof asksForAgent>[0],
  { devices, isImported }: Pick<LastSeen, 'devices' | 'isImported'>,
): Difference[] {
  // Nothing can differ before the devices were read; a guest that starts for the first time has the whole channel.
  if (devices === undefined || devices.size === 0) return [];
  const rows = [...devices.values()].filter(({ plugged }) => plugged !== false);
  const hasController = rows.some(({ type, device }) => type === 'controller' && device === 'virtio-serial');
  const isRequested = asksForAgent(next);
  if ((!isRequested && !(isImported && hasController)) || (hasController && rows.some(isAgentPort))) return [];
  const why = isRequested ? REQUESTED : IMPORTED;
  const port = { what: 'agent0', from: NOT_PRESENT, to: `port ${AGENT_PORT_NAME}`, why };
  if (hasController) return [port];
  return [{ what: 'virtio-serial0', from: NOT_PRESENT, to: 'virtio-serial, address assigned at the start', why }, port];
}

function isAgentPort({ type, specParams }: LearnedDevice): boolean {
  return type === 'channel' && specParams?.['name'] === AGENT_PORT_NAME;
}
