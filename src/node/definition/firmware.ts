/** Firmware: what the guest reads in SMBIOS, and what boots it. */
import type { Chipset } from '#api/chipset.ts';
import type { Smbios } from '#api/domain/chassis.ts';
import type { Domain } from '#api/domain/domain.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';
import type { FirmwareDefinition } from '#node/definition/domain-definition.ts';

/** `uid` stands in for the UUID of an instance that has none; a VM's always has one. */
export function defineFirmware(domain: Domain, uid: string, smbios?: Smbios): FirmwareDefinition {
  const { firmware } = domain;
  const chassis = linesOf(domain.chassis);
  const serial = firmware?.serial;
  return {
    uuid: firmware?.uuid || uid,
    ...(serial !== undefined && serial !== '' && { serial }),
    ...(smbios !== undefined && { smbios }),
    ...(chassis !== undefined && { chassis }),
    loader: loaderOf(domain),
  };
}

/** Only what is set, and can be said in SMBIOS. */
function linesOf<T extends Readonly<Record<string, string | undefined>>>(lines: T | undefined): T | undefined {
  const told = Object.entries(lines ?? {}).filter(([, text]) => text !== undefined && /^[ -~]{1,256}$/.test(text));
  return told.length === 0 ? undefined : (Object.fromEntries(told) as T);
}

function loaderOf(domain: Domain): FirmwareDefinition['loader'] {
  const efi = domain.firmware?.bootloader?.efi;
  if (efi === undefined) return { type: 'bios' };
  return { type: 'efi', secureBoot: efi.secureBoot ?? true, ...(keepsVariables(domain) && { persistent: true }) };
}

export function keepsVariables({ firmware }: Domain): boolean {
  return firmware?.bootloader?.efi?.persistent === true;
}

/** System management mode comes with secure boot, which stands on it. */
export function defineSmm(
  { features }: Domain,
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

export function defineAcpi({ features }: Domain): boolean {
  return features?.acpi?.enabled ?? true;
}
