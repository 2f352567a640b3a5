/** Devices that can only be switched on or off, and features: what is fixed may be said, but not said otherwise. */
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

export function checkDevices({ domain }: VmiSpec, path: string): FieldError[] {
  const { devices, features } = domain;
  const errors: FieldError[] = [];
  if (devices?.tpm?.persistent === true && devices.tpm.enabled !== false) {
    errors.push(forbiddenField(`${path}.domain.devices.tpm.persistent`, 'is not supported yet'));
  }
  if (devices?.autoattachGraphicsDevice === true) {
    const text = 'is not supported yet; use the serial console';
    errors.push(forbiddenField(`${path}.domain.devices.autoattachGraphicsDevice`, text));
  }
  if (features?.apic?.enabled === false) {
    errors.push(forbiddenField(`${path}.domain.features.apic.enabled`, 'the APIC is always on'));
  }
  return errors;
}
