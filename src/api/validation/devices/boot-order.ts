import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

/**
 * Checks that each number is used once among disks and interfaces, and only for devices that are present in the guest.
 */
export function checkBootOrder({ domain }: VmiSpec, path: string): FieldError[] {
  const { disks = [], interfaces = [] } = domain.devices ?? {};
  const field = `${path}.domain.devices`;
  const devices = [
    ...disks.map(({ bootOrder, plugged }, i) => ({
      bootOrder,
      at: `${field}.disks[${i}].bootOrder`,
      excludedBy: plugged === false ? 'plugged: false' : undefined,
    })),
    ...interfaces.map(({ bootOrder, state }, i) => ({
      bootOrder,
      at: `${field}.interfaces[${i}].bootOrder`,
      excludedBy: state === 'absent' ? 'state: absent' : undefined,
    })),
  ];
  const seen = new Set<number>();
  return devices.flatMap(({ bootOrder, at, excludedBy }) => {
    if (bootOrder === undefined) return [];
    if (excludedBy !== undefined) return [forbiddenField(at, `may not be set together with ${excludedBy}`)];
    if (seen.has(bootOrder)) {
      return [invalidValue(at, bootOrder, `Boot order for ${at} already set for a different device.`)];
    }
    seen.add(bootOrder);
    return [];
  });
}
