/** Copies of the disks of a simulated guest: only their state. FakeHost.onCopy or copy-images.ts writes the bytes. */
import type { DiskSource, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError, type CopyState, type DiskCopy } from '#node/hypervisor/hypervisor.ts';

/** Part of GuestRecord, so it is stored on disk. */
export interface FakeCopy extends DiskCopy {
  state: CopyState;
}

/** A disk and the file to which it is copied. */
export interface CopiedDisk {
  /** The path of the copy. */
  readonly path: string;
  /** The path of the disk. */
  readonly source: string;
  readonly format: DiskSource['format'];
}

const TOTAL_BYTES = 1024 * 1024;

/** The state of a copy that runs until it is completed or failed. */
export const COPYING: CopyState = { state: 'copying', doneBytes: 0, totalBytes: TOTAL_BYTES };

/** Throws if a disk does not exist or has no medium. */
export function resolveCopiedDisks({ name, devices }: DomainDefinition, copies: readonly DiskCopy[]): CopiedDisk[] {
  return copies.map(({ deviceId, path }) => {
    const disk = devices.find((device) => device.type === 'disk' && device.id === deviceId);
    if (disk?.type === 'disk' && disk.source !== undefined) {
      return { path, source: disk.source.path, format: disk.source.format };
    }
    throw new HypervisorError(
      `Cannot copy disks of domain "${name}": the guest has no disk "${deviceId}" with a medium`,
    );
  });
}
