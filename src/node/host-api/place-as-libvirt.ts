/**
 * Addresses for devices that were sent without one: the caller's VMs ran on hosts that left this to libvirt, and their
 * guests know the addresses that libvirt gave them (ADR 19). Pure.
 */
import { chipsetOf } from '#api/chipset.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { layOutAsLibvirt, type LibvirtLayout } from '#api/libvirt-layout/lay-out.ts';
import { AGENT_CHANNEL_ID } from '#node/definition/devices/agent-channel.ts';
import type { DeviceEntry } from '#node/host-api/device-entries.ts';
import { addressOf, modelOf } from '#node/host-api/device-fields.ts';
import { rowOf } from '#node/host-api/entry-spec.ts';
import { isOn, wholeOf } from '#node/host-api/sent-values.ts';

export interface PlaceOptions {
  readonly machine: string;
  /** As it was sent; hosts gave every VM the channel of their agent unless it was switched off. */
  readonly vmchannel?: unknown;
}

/**
 * Returns the rows of the devices, and those of controllers that they need and nobody sent. What this host has no device
 * for gets no controller, but its slot stays free.
 */
export function placeAsLibvirt(
  entries: readonly DeviceEntry[],
  { machine, vmchannel = true }: PlaceOptions,
): LibvirtLayout {
  const rows = entries.map(rowOf);
  const isFirstRun = entries.every(({ device }) => addressOf(device) === undefined);
  const layout = layOutAsLibvirt(
    entries.map((entry, i) => withModel(rows[i] ?? rowOf(entry), entry)),
    {
      chipset: chipsetOf(machine) ?? 'i440fx',
      targets: targetsOf(entries),
      hasAgentChannel: isFirstRun && isOn(vmchannel),
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

/** Channels besides that of the agent are not there, so they have no place either. */
function withAddress(row: LearnedDevice, address: LearnedDevice['address']): LearnedDevice {
  const isLeftOut = row.type === 'channel' && row.id !== AGENT_CHANNEL_ID;
  return address === undefined || isLeftOut ? row : { ...row, address };
}

/** Returns the row with the words by which libvirt tells devices apart: model and index. */
function withModel(row: LearnedDevice, { device }: DeviceEntry): LearnedDevice {
  if (row.type === 'interface') return { ...row, device: modelOf(device) ?? 'virtio' };
  const index = wholeOf(device.specParams?.['index'] ?? device['index']);
  if (row.type !== 'controller' || index === undefined) return row;
  return { ...row, specParams: { ...row.specParams, index: String(index) } };
}

function targetsOf(entries: readonly DeviceEntry[]): ReadonlyMap<string, number> {
  return new Map(
    entries.filter(({ device }) => device.type === 'disk').map(({ id, device }) => [id, wholeOf(device['index']) ?? 0]),
  );
}
