/** Finds the UEFI firmware of this host and selects the pair of files that a guest gets. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { FirmwareDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

export const DEFAULT_OVMF_DIR = '/usr/share/OVMF';

export interface FirmwareFiles {
  /** Read only, shared by all guests. */
  readonly code: string;
  /** The template of the EFI variables; each guest gets its own copy. */
  readonly variables: string;
}

/**
 * Returns the files for a loader, or undefined for BIOS. The secure boot variables contain Microsoft's keys, as on
 * physical machines.
 */
export function firmwareFiles(loader: FirmwareDefinition['loader'], ovmfDir: string): FirmwareFiles | undefined {
  if (loader.type === 'bios') return undefined;
  const [code, variables] = loader.secureBoot
    ? ['OVMF_CODE_4M.secboot.fd', 'OVMF_VARS_4M.ms.fd']
    : ['OVMF_CODE_4M.fd', 'OVMF_VARS_4M.fd'];
  return { code: join(ovmfDir, code), variables: join(ovmfDir, variables) };
}

export async function findFirmware(
  loader: FirmwareDefinition['loader'],
  ovmfDir: string,
): Promise<FirmwareFiles | undefined> {
  const files = firmwareFiles(loader, ovmfDir);
  if (files === undefined) return undefined;
  for (const path of [files.code, files.variables]) {
    await access(path).catch((cause: unknown) => {
      throw new HypervisorError(`firmware file "${path}" is missing; install the package ovmf`, { cause });
    });
  }
  return files;
}
