/** Defines the firmware of a guest: the SMBIOS values, the boot loader, ACPI and SMM. */
import type { Chipset } from '#api/devices/chipset.ts';
import type { Smbios } from '#api/domain/chassis.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';
import type { FirmwareDefinition } from '#node/hardware/domain-definition.ts';

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

export function requestsPersistentVariables({ firmware }: DomainSpec): boolean {
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
