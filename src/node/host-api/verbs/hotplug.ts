/**
 * The verbs `hotplugDisk` and `hotplugNic`: plug a device into a running guest, at the sent address or at a free one.
 */
import { HOST_CODES, type HostAnswer, type HostStatus } from '#api/host-api.ts';
import type { FieldError } from '#kube/field-error.ts';
import { formatAnyAddress } from '#api/devices/pci-address.ts';
import { layoutOfDomain, placeHotplugged } from '#node/definition/addresses/place-hotplugged.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import { defineDisk } from '#node/definition/devices/disk.ts';
import { defineInterface, checkInterfaceRoom } from '#node/definition/devices/interface.ts';
import type { DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';
import { findHostDomain, findMapParameter, refuseCall } from '#node/host-api/answers.ts';
import { isSameAddress, withErrorPolicy } from '#node/host-api/definition/define-input.ts';
import { buildDeviceEntries, type DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { sentAddressOf } from '#node/host-api/sent/device-fields.ts';
import { checkDeviceKeys } from '#node/host-api/sent/device-keys.ts';
import { sourceKey, readDiskSource } from '#node/host-api/sent/disk-source.ts';
import { toDiskSpec, toInterfaceSpec, toRow } from '#node/host-api/definition/entry-spec.ts';
import { refreshDevices, type HostParts } from '#node/host-api/host-parts.ts';
import type { KeyFindings } from '#node/host-api/sent/key-rules.ts';
import { findMedia } from '#node/host-api/definition/media.ts';
import { isTooDeep, readText, type SentMap } from '#node/host-api/sent/sent-values.ts';
import { renderHostVm } from '#node/host-api/verbs/render-host-vm.ts';
import type { HostVmRecord } from '#node/host-api/host-vm-records.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

export type PluggableKind = 'disk' | 'nic';

interface KindParameters {
  readonly key: string;
  readonly type: string;
  readonly device: string;
  readonly failed: HostStatus;
}

const KINDS: Readonly<Record<PluggableKind, KindParameters>> = {
  disk: { key: 'drive', type: 'disk', device: 'disk', failed: HOST_CODES.hotplugDiskFailed },
  nic: { key: 'nic', type: 'interface', device: 'bridge', failed: HOST_CODES.hotplugNicFailed },
};

const ADVICE = 'change its spec, or use virtctl addvolume';

export async function hotplugDevice(kind: PluggableKind, parameters: SentMap, parts: HostParts): Promise<HostAnswer> {
  const { key, failed } = KINDS[kind];
  const found = findHostDomain(parameters, parts, { failed, advice: ADVICE });
  if (found.refusal !== undefined) return found.refusal;
  const sent = findMapParameter(parameters, key, failed);
  if (sent.refusal !== undefined) return sent.refusal;
  if (isTooDeep(sent.map)) return refuseCall(failed, `${key} is nested too deeply`);
  const { id } = found.domain;
  return await parts.turns.run(id, async () => {
    const errors = await plugDevice(id, sent.map, KINDS[kind], parts);
    if (errors.length > 0) return refuseCall(failed, ...errors);
    await refreshDevices(id, parts);
    const domain = parts.hypervisor.get(id);
    const hostVm = domain && renderHostVm(domain, parts);
    const notes = checkSentKeys(sent.map, KINDS[kind]).notes;
    return {
      status: HOST_CODES.done,
      ...(hostVm === undefined ? {} : { vmList: [hostVm] }),
      ...(notes.length > 0 && { notes }),
    };
  });
}

function checkSentKeys(sent: SentMap, { key, type, device }: KindParameters): KeyFindings {
  return checkDeviceKeys(key, { device, ...sent, type });
}

/** Plugs the device in. Returns the reasons if that is not possible, otherwise an empty list. */
async function plugDevice(
  id: string,
  sent: SentMap,
  kind: KindParameters,
  parts: HostParts,
): Promise<readonly string[]> {
  const { hypervisor, vms, images } = parts;
  const current = hypervisor.inspect(id)?.definition;
  if (current === undefined || hypervisor.get(id)?.current.state === 'ended') return ['the guest is not running'];
  const record = vms.get(id) ?? { vmId: id, vmName: current.name, sent: {}, entries: [] };
  const ids = new Set(current.devices.map((device) => device.id));
  const existing = record.entries.filter((entry) => ids.has(entry.id));
  const errors: string[] = [...checkSentKeys(sent, kind).errors];
  const { key, type, device } = kind;
  const layout = layoutOfDomain(current);
  const item = { field: key, device: { device, ...sent, type } };
  const [entry] = buildDeviceEntries([item], { chipset: layout.chipset, existing }, errors);
  if (entry === undefined || errors.length > 0) return errors;
  const duplicate = existing.find((other) => isSameDevice(other, entry, images.dir));
  if (duplicate !== undefined) return [`${key}: already plugged in as ${duplicate.id}`];
  if (ids.has(entry.id)) return [`${key}: the guest already has a device ${entry.id}`];

  const { media, notes, errors: mediaErrors } = await findMedia([entry], images);
  if (mediaErrors.length + notes.length > 0) return [...mediaErrors, ...notes];
  const problems: FieldError[] = [];
  const unplaced: UnplacedDevice<PluggableDevice> =
    type === 'disk'
      ? defineDisk(toDiskSpec(entry), key, media.get(entry.id), { layout }, problems)
      : defineNic(entry, current, problems);
  if (problems.length > 0) return problems.map(({ message }) => `${key}: ${message}`);
  // The boot order only matters at a start, and the record keeps it for the next one.
  const { bootOrder: _bootOrder, ...hotplugged } =
    unplaced.device.type === 'disk' ? withErrorPolicy(unplaced.device, entry) : unplaced.device;
  const known = { devices: [toRow(entry)] };
  const placed = placeHotplugged({ ...unplaced, device: hotplugged }, current, known);
  if (placed.problem !== undefined) return [`${key}: ${placed.problem}`];
  const requested = sentAddressOf(entry.device);
  if (requested !== undefined && !isSameAddress(requested, placed.device.address ?? {})) {
    return [`${key}.address: ${formatAnyAddress(requested)} is occupied or not available in the running guest`];
  }
  return await saveAndPlug(placed.device, { ...record, entries: [...existing, entry] }, record, parts);
}

/**
 * Saves the record before plugging in, so that `list` reports the device correctly even if the agent is killed in
 * between.
 */
async function saveAndPlug(
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

function defineNic(
  entry: DeviceEntry,
  current: DomainDefinition,
  problems: FieldError[],
): UnplacedDevice<PluggableDevice> {
  const { item, network } = toInterfaceSpec(entry);
  const context = { ownerUid: current.id, layout: layoutOfDomain(current) };
  const unplaced = defineInterface(item, entry.field, [network], context, problems);
  const full = checkInterfaceRoom(unplaced.device, current);
  if (full !== undefined) problems.push({ reason: 'FieldValueInvalid', field: entry.field, message: full });
  return unplaced;
}

function isSameDevice({ device: one }: DeviceEntry, { device: other }: DeviceEntry, imagesDir: string): boolean {
  if (one.type !== other.type) return false;
  if (one.type === 'interface') return isSameMac(one['macAddr'], other['macAddr']);
  const key = sourceKey(readDiskSource(one, imagesDir));
  return key !== undefined && key === sourceKey(readDiskSource(other, imagesDir));
}

export function isSameMac(one: unknown, other: unknown): boolean {
  const plain = (mac: unknown) => readText(mac)?.toLowerCase().replaceAll('-', ':');
  return plain(one) !== undefined && plain(one) === plain(other);
}
