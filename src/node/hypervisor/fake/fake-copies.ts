/** Copies of the disks of a simulated guest: what is remembered of them. The bytes are the business of who listens. */
import type { DiskSource, DomainDefinition } from '#node/definition/domain-definition.ts';
import { HypervisorError, type CopyState, type DiskCopy } from '../hypervisor.ts';

/** Part of what is kept of a guest, also on disk. */
export interface FakeCopy extends DiskCopy {
  state: CopyState;
}

/** What was copied where, at the moment to which the copy belongs. */
export interface CopiedDisk {
  /** Of the copy. */
  readonly path: string;
  /** Of the disk. */
  readonly source: string;
  readonly format: DiskSource['format'];
}

const TOTAL_BYTES = 1024 * 1024;

/** A copy that goes on until it is told to end. */
export const COPYING: CopyState = { state: 'copying', doneBytes: 0, totalBytes: TOTAL_BYTES };

/** Throws for a disk that is not there or has no medium. */
export function copiedDisks({ name, devices }: DomainDefinition, copies: readonly DiskCopy[]): CopiedDisk[] {
  return copies.map(({ deviceId, path }) => {
    const disk = devices.find((device) => device.type === 'disk' && device.id === deviceId);
    if (disk?.type === 'disk' && disk.source !== undefined) {
      return { path, source: disk.source.path, format: disk.source.format };
    }
    throw new HypervisorError(`Cannot copy disks of domain "${name}": it has no disk "${deviceId}" with a medium`);
  });
}
