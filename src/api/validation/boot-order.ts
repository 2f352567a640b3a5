import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';

/** Each number once, over disks and interfaces. */
export function checkBootOrder({ domain }: VmiSpec, path: string): FieldError[] {
  const { disks = [], interfaces = [] } = domain.devices ?? {};
  const field = `${path}.domain.devices`;
  const devices = [
    ...disks.map(({ bootOrder }, i) => ({ bootOrder, at: `${field}.disks[${i}].bootOrder` })),
    ...interfaces.map(({ bootOrder }, i) => ({ bootOrder, at: `${field}.interfaces[${i}].bootOrder` })),
  ];
  const seen = new Set<number>();
  return devices.flatMap(({ bootOrder, at }) => {
    if (bootOrder === undefined) return [];
    if (seen.has(bootOrder)) {
      return [invalidValue(at, bootOrder, `Boot order for ${at} already set for a different device.`)];
    }
    seen.add(bootOrder);
    return [];
  });
}
