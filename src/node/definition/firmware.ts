/** Defines the firmware of a guest: the SMBIOS values, the boot loader, ACPI, SMM, and the persistent state. */
import type { Chipset } from '#api/devices/chipset.ts';
import type { Smbios } from '#api/domain/chassis.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';
import type { FirmwareDefinition, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { requestsPersistentTpm } from '#node/definition/devices/simple-devices.ts';

/** Defines the firmware. `uid` becomes the UUID of an instance without one; instances of a VM always have one. */
export function defineFirmware(domain: DomainSpec, uid: string, smbios?: Smbios): FirmwareDefinition {
  const { firmware } = domain;
  const chassis = printableValues(domain.chassis);
  const serial = firmware?.serial;
  return {
    uuid: firmware?.uuid || uid,
    ...(serial !== undefined && serial !== '' && { serial }),
    ...(smbios !== undefined && { smbios }),
    ...(chassis !== undefined && { chassis }),
    loader: loaderOf(domain),
  };
}

/** Returns the values that are set and that SMBIOS can hold, or undefined if there are none. */
function printableValues<T extends Readonly<Record<string, string | undefined>>>(values: T | undefined): T | undefined {
  const found = Object.entries(values ?? {}).filter(([, text]) => text !== undefined && /^[ -~]{1,256}$/.test(text));
  return found.length === 0 ? undefined : (Object.fromEntries(found) as T);
}

function loaderOf(domain: DomainSpec): FirmwareDefinition['loader'] {
  const efi = domain.firmware?.bootloader?.efi;
  if (efi === undefined) return { type: 'bios' };
  return {
    type: 'efi',
    secureBoot: efi.secureBoot ?? true,
    ...(requestsPersistentVariables(domain) && { persistent: true }),
  };
}

function requestsPersistentVariables({ firmware }: DomainSpec): boolean {
  return firmware?.bootloader?.efi?.persistent === true;
}

/** Enables system management mode if secure boot needs it or the spec asks for it. */
export function defineSmm(
  { features }: DomainSpec,
  { loader }: FirmwareDefinition,
  chipset: Chipset,
  problems: FieldError[],
): boolean {
  const needed = loader.type === 'efi' && loader.secureBoot;
  if (needed && chipset !== 'q35') {
    const detail = `must be false with ${chipset} machine types: secure boot needs q35`;
    problems.push(forbiddenField('spec.domain.firmware.bootloader.efi.secureBoot', detail));
  }
  const enabled = features?.smm === undefined ? needed : (features.smm.enabled ?? true);
  if (needed && !enabled) {
    problems.push(forbiddenField('spec.domain.features.smm.enabled', 'may not be false: secure boot needs it'));
  }
  return enabled;
}

export function defineAcpi({ features }: DomainSpec): boolean {
  return features?.acpi?.enabled ?? true;
}

/**
 * Defines the persistent state of a guest: the content of its TPM and its EFI variables. Returns undefined if the guest has
 * none, even if there is a directory for it.
 */
export function defineState(
  domain: DomainSpec,
  state: DomainDefinition['state'],
  problems: FieldError[],
): DomainDefinition['state'] {
  const persistentFields = [
    ...(requestsPersistentTpm(domain.devices ?? {}) ? ['spec.domain.devices.tpm.persistent'] : []),
    ...(requestsPersistentVariables(domain) ? ['spec.domain.firmware.bootloader.efi.persistent'] : []),
  ];
  if (persistentFields.length === 0) return undefined;
  if (state === undefined) {
    problems.push(
      ...persistentFields.map((field) =>
        forbiddenField(field, 'may not be true: the guest has no volume for its persistent state'),
      ),
    );
  }
  return state;
}
