/** The chipset of a machine type: what decides which addresses there are. Pure. */

export const CHIPSETS = ['q35', 'i440fx'] as const;
export type Chipset = (typeof CHIPSETS)[number];

/** Undefined for what is neither; `pc` is QEMU's alias of the newest i440fx. */
export function chipsetOf(machineType: string | undefined): Chipset | undefined {
  if (machineType === undefined || machineType === '') return undefined;
  if (/^(?:pc-)?q35(?:$|-)/.test(machineType)) return 'q35';
  return machineType === 'pc' || /^pc-(?:i440fx-|[0-9])/.test(machineType) ? 'i440fx' : undefined;
}
