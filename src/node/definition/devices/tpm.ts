/**
 * A TPM 2.0 behind the CRB interface, with either firmware (measured: SeaBIOS hands it to the guest as OVMF does), so
 * that a change of firmware does not change the TPM.
 */
import type { Devices } from '#api/domain/devices.ts';
import type { TpmDevice } from '#node/definition/domain-definition.ts';

export function defineTpm(devices: Devices): TpmDevice[] {
  if (!hasTpm(devices)) return [];
  return [{ type: 'tpm', id: 'tpm0', model: 'crb', ...(keepsTpm(devices) && { persistent: true }) }];
}

export function keepsTpm(devices: Devices): boolean {
  return hasTpm(devices) && devices.tpm?.persistent === true;
}

function hasTpm({ tpm }: Devices): boolean {
  return tpm !== undefined && tpm.enabled !== false;
}
