/**
 * Assigns addresses to devices that were sent without one, as libvirt did on oVirt's hosts, because the guests already
 * know those addresses (ADR 19). Pure.
 */
import { chipsetOf } from '#api/devices/chipset.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { layOutAsLibvirt, type LibvirtLayout } from '#api/libvirt-layout/lay-out.ts';
import { AGENT_CHANNEL_ID } from '#node/definition/devices/agent-channel.ts';
import type { DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { sentAddressOf, nicModelOf } from '#node/host-api/sent/device-fields.ts';
import { toRow } from '#node/host-api/definition/entry-spec.ts';
import { isEnabled, readWholeNumber } from '#node/host-api/sent/sent-values.ts';

interface LibvirtPlacementOptions {
  readonly machine: string;
  /** As it was sent. oVirt's hosts gave every VM the channel of their agent unless this was off. */
  readonly vmchannel?: unknown;
}

/**
 * Returns the rows of the devices, and of controllers that they need and that were not sent. A channel that this host
 * does not support gets no controller, but the slot of that controller stays free.
 */
export function placeAsLibvirt(
  entries: readonly DeviceEntry[],
  { machine, vmchannel = true }: LibvirtPlacementOptions,
): LibvirtLayout {
  const rows = entries.map(toRow);
  const isFirstRun = entries.every(({ device }) => sentAddressOf(device) === undefined);
  const layout = layOutAsLibvirt(
    entries.map((entry, i) => withModel(rows[i] ?? toRow(entry), entry)),
    {
      chipset: chipsetOf(machine) ?? 'i440fx',
      targets: targetsOf(entries),
      hasAgentChannel: isFirstRun && isEnabled(vmchannel),
    },
  );
  const [laidOut, added] = [layout.rows.slice(0, rows.length), layout.rows.slice(rows.length)];
  const hasChannel = rows.some(({ id }) => id === AGENT_CHANNEL_ID);
  return {
    notes: layout.notes,
    rows: [
      ...rows.map((row, i) => withAddress(row, laidOut[i]?.address)),
      ...added.filter(({ device }) => device !== 'virtio-serial' || hasChannel),
    ],
  };
}

/** Returns the row with the address. Channels other than that of the guest agent are left out, so they get none. */
function withAddress(row: LearnedDevice, address: LearnedDevice['address']): LearnedDevice {
  const isLeftOut = row.type === 'channel' && row.id !== AGENT_CHANNEL_ID;
  return address === undefined || isLeftOut ? row : { ...row, address };
}

/** Returns the row with the properties by which libvirt distinguishes devices: model and index. */
function withModel(row: LearnedDevice, { device }: DeviceEntry): LearnedDevice {
  if (row.type === 'interface') return { ...row, device: nicModelOf(device) ?? 'virtio' };
  const index = readWholeNumber(device.specParams?.['index'] ?? device['index']);
  if (row.type !== 'controller' || index === undefined) return row;
  return { ...row, specParams: { ...row.specParams, index: String(index) } };
}

function targetsOf(entries: readonly DeviceEntry[]): ReadonlyMap<string, number> {
  return new Map(
    entries
      .filter(({ device }) => device.type === 'disk')
      .map(({ id, device }) => [id, readWholeNumber(device['index']) ?? 0]),
  );
}
