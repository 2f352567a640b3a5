/**
 * Defines a TPM 2.0 with a CRB interface for both kinds of firmware, so that a change of firmware does not change the
 * TPM (measured: guests find it with SeaBIOS as well as with OVMF).
 */
import type { Devices } from '#api/domain/devices.ts';
import type { TpmDevice } from '#node/hardware/domain-definition.ts';

export function defineTpm(devices: Devices): TpmDevice[] {
  if (!hasTpm(devices)) return [];
  return [{ type: 'tpm', id: 'tpm0', model: 'crb', ...(requestsPersistentTpm(devices) && { persistent: true }) }];
}

export function requestsPersistentTpm(devices: Devices): boolean {
  return hasTpm(devices) && devices.tpm?.persistent === true;
}

function hasTpm({ tpm }: Devices): boolean {
  return tpm !== undefined && tpm.enabled !== false;
}
