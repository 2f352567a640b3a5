/** `hotplugDisk` and `hotplugNic`: one device more in a guest that runs, at the address that was sent or a free one. */
import { HOST_CODES, type HostAnswer, type HostStatus } from '#api/host-api.ts';
import type { FieldError } from '#kube/field-error.ts';
import { printAddress } from '#api/pci-address.ts';
import { layoutOfDomain, placeLate } from '#node/definition/addresses/place-late.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import { defineDisk } from '#node/definition/devices/disk.ts';
import { defineInterface, whyNoRoom } from '#node/definition/devices/interface.ts';
import type { DomainDefinition, PluggableDevice } from '#node/definition/domain-definition.ts';
import { domainOf, mapIn, refused } from '#node/host-api/answers.ts';
import { isSamePlace, withErrorPolicy } from '#node/host-api/define-input.ts';
import { deviceEntries, type DeviceEntry } from '#node/host-api/device-entries.ts';
import { addressOf } from '#node/host-api/device-fields.ts';
import { deviceFindings } from '#node/host-api/device-keys.ts';
import { sourceKey, sourceOf } from '#node/host-api/disk-source.ts';
import { diskOf, interfaceOf, rowOf } from '#node/host-api/entry-spec.ts';
import { learnNow, type HostParts } from '#node/host-api/host-parts.ts';
import type { KeyFindings } from '#node/host-api/key-rules.ts';
import { findMedia } from '#node/host-api/media.ts';
import { isTooDeep, textOf, type SentMap } from '#node/host-api/sent-values.ts';
import { toldVm } from '#node/host-api/told-vm.ts';
import type { HostVmRecord } from '#node/host-api/vm-book.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

export type Pluggable = 'disk' | 'nic';

interface Sort {
  readonly key: string;
  readonly type: string;
  readonly device: string;
  readonly failed: HostStatus;
}

const SORTS: Readonly<Record<Pluggable, Sort>> = {
  disk: { key: 'drive', type: 'disk', device: 'disk', failed: HOST_CODES.hotplugDiskFailed },
  nic: { key: 'nic', type: 'interface', device: 'bridge', failed: HOST_CODES.hotplugNicFailed },
};

const INSTEAD = 'change its spec, or use virtctl addvolume';

export async function hotplug(sort: Pluggable, parameters: SentMap, parts: HostParts): Promise<HostAnswer> {
  const { key, failed } = SORTS[sort];
  const found = domainOf(parameters, parts, { failed, instead: INSTEAD });
  if (found.refusal !== undefined) return found.refusal;
  const sent = mapIn(parameters, key, failed);
  if (sent.refusal !== undefined) return sent.refusal;
  if (isTooDeep(sent.map)) return refused(failed, `${key} is too deep`);
  const { id } = found.domain;
  return await parts.turns.take(id, async () => {
    const faults = await plug(id, sent.map, SORTS[sort], parts);
    if (faults.length > 0) return refused(failed, ...faults);
    await learnNow(id, parts);
    const domain = parts.hypervisor.get(id);
    const told = domain && toldVm(domain, parts);
    const notes = unusedOf(sent.map, SORTS[sort]).notes;
    return {
      status: HOST_CODES.done,
      ...(told === undefined ? {} : { vmList: [told] }),
      ...(notes.length > 0 && { notes }),
    };
  });
}

function unusedOf(sent: SentMap, { key, type, device }: Sort): KeyFindings {
  return deviceFindings(key, { device, ...sent, type });
}

/** Returns why the device cannot be plugged in, or nothing once it is plugged in. */
async function plug(id: string, sent: SentMap, sort: Sort, parts: HostParts): Promise<readonly string[]> {
  const { hypervisor, vms, images } = parts;
  const current = hypervisor.inspect(id)?.definition;
  if (current === undefined || hypervisor.get(id)?.current.state === 'ended') return ['the guest does not run'];
  const record = vms.get(id) ?? { vmId: id, vmName: current.name, sent: {}, entries: [] };
  const ids = new Set(current.devices.map((device) => device.id));
  const before = record.entries.filter((entry) => ids.has(entry.id));
  const faults: string[] = [...unusedOf(sent, sort).faults];
  const { key, type, device } = sort;
  const layout = layoutOfDomain(current);
  const item = { field: key, device: { device, ...sent, type } };
  const [entry] = deviceEntries([item], { chipset: layout.chipset, before }, faults);
  if (entry === undefined || faults.length > 0) return faults;
  const twin = before.find((other) => isTwin(other, entry, images.dir));
  if (twin !== undefined) return [`${key}: it is plugged in already, as ${twin.id}`];
  if (ids.has(entry.id)) return [`${key}: the guest has a device ${entry.id} already`];

  const { media, notes, faults: mediaFaults } = await findMedia([entry], images);
  if (mediaFaults.length + notes.length > 0) return [...mediaFaults, ...notes];
  const problems: FieldError[] = [];
  const unplaced: Unplaced<PluggableDevice> =
    type === 'disk'
      ? defineDisk(diskOf(entry), key, media.get(entry.id), { layout }, problems)
      : nicOf(entry, current, problems);
  if (problems.length > 0) return problems.map(({ message }) => `${key}: ${message}`);
  // Boot order is for the next start: this one boots nothing now.
  const { bootOrder: _bootOrder, ...late } =
    unplaced.device.type === 'disk' ? withErrorPolicy(unplaced.device, entry) : unplaced.device;
  const known = { devices: [rowOf(entry)] };
  const placed = placeLate({ ...unplaced, device: late }, current, known);
  if (placed.problem !== undefined) return [`${key}: ${placed.problem}`];
  const asked = addressOf(entry.device);
  if (asked !== undefined && !isSamePlace(asked, placed.device.address ?? {})) {
    return [`${key}.address: ${printAddress(asked)} is taken, or no place for it in the running guest`];
  }
  return await plugAt(placed.device, { ...record, entries: [...before, entry] }, record, parts);
}

/** Written before it is plugged in, so that it is told as what it is whenever we are killed. */
async function plugAt(
  device: PluggableDevice,
  after: HostVmRecord,
  before: HostVmRecord,
  { hypervisor, vms }: HostParts,
): Promise<readonly string[]> {
  await vms.save(after);
  try {
    await hypervisor.plug(after.vmId, device);
    return [];
  } catch (error) {
    await vms.save(before);
    if (!(error instanceof HypervisorError)) throw error;
    return [error.message];
  }
}

function nicOf(entry: DeviceEntry, current: DomainDefinition, problems: FieldError[]): Unplaced<PluggableDevice> {
  const { item, network } = interfaceOf(entry);
  const context = { ownerUid: current.id, layout: layoutOfDomain(current) };
  const unplaced = defineInterface(item, entry.field, [network], context, problems);
  const full = whyNoRoom(unplaced.device, current);
  if (full !== undefined) problems.push({ reason: 'FieldValueInvalid', field: entry.field, message: full });
  return unplaced;
}

function isTwin({ device: one }: DeviceEntry, { device: other }: DeviceEntry, imagesDir: string): boolean {
  if (one.type !== other.type) return false;
  if (one.type === 'interface') return isSameMac(one['macAddr'], other['macAddr']);
  const key = sourceKey(sourceOf(one, imagesDir));
  return key !== undefined && key === sourceKey(sourceOf(other, imagesDir));
}

export function isSameMac(one: unknown, other: unknown): boolean {
  const plain = (mac: unknown) => textOf(mac)?.toLowerCase().replaceAll('-', ':');
  return plain(one) !== undefined && plain(one) === plain(other);
}
