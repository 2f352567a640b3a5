/** The files that a guest sees in its sandbox when it starts, besides the host's programs. Pure. */
import { join } from 'node:path';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { TPM_STATE, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { FileUse } from '#node/hypervisor/qemu/sandbox/file-owner.ts';
import type { VisibleFile } from '#node/sandbox/oci-config.ts';
import type { FirmwareFiles } from '#node/hypervisor/qemu/state/firmware.ts';
import type { PersistentState } from '#node/hypervisor/qemu/state/persistent-state.ts';

interface DiskFile extends VisibleFile {
  readonly use: FileUse;
}

/** Returns the files of the disks, and the files on which they are based. */
export function diskFiles({ devices }: DomainDefinition): DiskFile[] {
  const files = new Map<string, DiskFile>();
  const add = (path: string, readonly: boolean) => {
    // Two drives may have the same medium; one that is written counts.
    if (files.get(path)?.readonly === false) return;
    files.set(path, { path, readonly, use: readonly ? 'shared' : 'own' });
  };
  for (const device of devices) {
    if (device.type !== 'disk' || device.source === undefined) continue;
    add(device.source.path, device.readonly);
    if (device.source.base !== undefined) add(device.source.base, true);
  }
  return [...files.values()];
}

interface StartFiles {
  readonly firmware: FirmwareFiles | undefined;
  readonly persistent: PersistentState;
  readonly binaries: readonly string[];
}

/** Returns all other files. Programs and firmware of the system are visible anyway. */
export function ownFiles(
  { run, key }: Pick<DomainDir, 'run' | 'key'>,
  { kernel }: DomainDefinition,
  { firmware, persistent, binaries }: StartFiles,
): VisibleFile[] {
  const read = [kernel?.kernelPath, kernel?.initrdPath, firmware?.code, ...binaries];
  const isElsewhere = (path: string | undefined): path is string =>
    path?.startsWith('/') === true && !path.startsWith('/usr/');
  return [
    { path: run, readonly: false },
    { path: key, readonly: true },
    ...(persistent.tpm === undefined ? [] : [{ path: persistent.tpm, readonly: false, as: join(run, TPM_STATE) }]),
    ...(persistent.nvram === undefined ? [] : [{ path: persistent.nvram, readonly: false }]),
    ...read.filter(isElsewhere).map((path) => ({ path, readonly: true })),
  ];
}
