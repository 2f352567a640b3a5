/** The chipset of a machine type, which decides which device addresses exist. Pure. */

export const CHIPSETS = ['q35', 'i440fx'] as const;
export type Chipset = (typeof CHIPSETS)[number];

/** Returns undefined for machine types of other chipsets. `pc` is QEMU's alias of the newest i440fx. */
export function chipsetOf(machineType: string | undefined): Chipset | undefined {
  if (machineType === undefined || machineType === '') return undefined;
  if (/^(?:pc-)?q35(?:$|-)/.test(machineType)) return 'q35';
  return machineType === 'pc' || /^pc-(?:i440fx-|[0-9])/.test(machineType) ? 'i440fx' : undefined;
}
