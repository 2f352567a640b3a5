/**
 * Assigns addresses to imported devices that have none: those that libvirt gave them when the machine ran on libvirt.
 * The import stores them in the identity record, so that the guest has them at its first start. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import { layOutAsLibvirt, type LayoutOptions } from '#api/libvirt-layout/lay-out.ts';
import type { Findings } from '#formats/findings.ts';
import type { MachineDescription } from '#formats/machine.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

interface ImportedLayout extends Omit<LayoutOptions, 'chipset'> {
  readonly chipset: Chipset | undefined;
  /** The original models of interfaces whose model is replaced, by id. */
  readonly models?: ReadonlyMap<string, string>;
}

/** Returns the devices unchanged if the chipset is unknown, because addresses would have no meaning. */
export function layOutImported<T extends Devices>(devices: T, layout: ImportedLayout, findings: Findings): T {
  const { chipset, models, ...options } = layout;
  if (chipset === undefined) return devices;
  const buses = new Map<string, string>(devices.disks.map(({ id, bus }) => [id, bus]));
  const described = devices.rows.map((row) => {
    const [bus, model] = [buses.get(row.id), models?.get(row.id)];
    return {
      ...row,
      ...(model !== undefined && { device: model }),
      ...(bus !== undefined && { specParams: { ...row.specParams, bus } }),
    };
  });
  const laidOut = layOutAsLibvirt(described, { ...options, chipset });
  for (const note of laidOut.notes) findings.addNote(note);
  const rows = laidOut.rows.map((row, i) => {
    const before = devices.rows[i];
    if (before === undefined || row.address === undefined) return before ?? row;
    return { ...before, address: row.address };
  });
  return { ...devices, rows };
}

export function hasAddresses({ rows }: Devices): boolean {
  return rows.some(({ address }) => address !== undefined);
}
