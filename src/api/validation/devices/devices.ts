/** Checks devices and features with fixed values, which a spec may repeat but not change, and reserved names. */
import { STATE_POD_VOLUME, STATE_VOLUME } from '#api/storage/persistent-state.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

const RESERVED: ReadonlySet<string> = new Set([STATE_POD_VOLUME, STATE_VOLUME]);

export function checkDevices({ domain, volumes = [] }: VmiSpec, path: string): FieldError[] {
  const { devices, features } = domain;
  const errors: FieldError[] = [];
  if (devices?.autoattachGraphicsDevice === false && devices.video !== undefined) {
    const text = 'may not be set if autoattachGraphicsDevice is false';
    errors.push(forbiddenField(`${path}.domain.devices.video`, text));
  }
  if (devices?.autoattachGraphicsDevice === true && devices.video?.type === 'none') {
    const text = 'may not be none if autoattachGraphicsDevice is true';
    errors.push(invalidValue(`${path}.domain.devices.video.type`, 'none', text));
  }
  if (features?.apic?.enabled === false) {
    errors.push(forbiddenField(`${path}.domain.features.apic.enabled`, 'the APIC is always on'));
  }
  // A volume of that name in the launcher pod would be mistaken for the persistent state.
  for (const [i, { name }] of volumes.entries()) {
    if (!RESERVED.has(name)) continue;
    errors.push(invalidValue(`${path}.volumes[${i}].name`, name, 'is reserved for the persistent state of the VM'));
  }
  return errors;
}
