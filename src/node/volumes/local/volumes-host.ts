/** The host of volumes/, and the refusals with which its parts report that a volume is not ready. */
import { parseQuantity, quantityToNumber } from '#kube/quantity.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';
import type { PreparedVolume } from '#node/volumes/volumes-port.ts';
import type { RunCommand } from '#node/volumes/local/run-command.ts';
import type { RunIsolated } from '#node/volumes/local/run-isolated.ts';

/** The reason why a volume cannot be used. `waiting` is retried later, `failed` is not. */
export interface VolumeRefusal {
  readonly is: 'waiting' | 'failed';
  readonly reason: string;
  readonly message: string;
  /** Set if the volume does not exist; a guest can start without it if its disk is optional. */
  readonly isMissing?: true;
}

export type PreparedDisk = { readonly is: 'ready'; readonly volume: PreparedVolume } | VolumeRefusal;

export function waitingRefusal(reason: string, message: string): VolumeRefusal {
  return { is: 'waiting', reason, message };
}

/** A `waiting` refusal for a volume that does not exist (yet). */
export function missingRefusal(reason: string, message: string): VolumeRefusal {
  return { is: 'waiting', reason, message, isMissing: true };
}

export function failedRefusal(reason: string, message: string): VolumeRefusal {
  return { is: 'failed', reason, message };
}

export function isVolumeRefusal(value: object | undefined): value is VolumeRefusal {
  return value !== undefined && 'is' in value && (value.is === 'waiting' || value.is === 'failed');
}

/** The properties of the machine that volumes depend on. Paths of directories have no symbolic links. */
export interface VolumesHost {
  readonly nodeName: string;
  readonly nodeDir: string;
  readonly sharedDir: string;
  /** The directories for hostDisk volumes. */
  readonly hostDiskDirs: readonly string[];
  /** The directory of block devices: /dev. */
  readonly devDir: string;
  /** True if the agent may create loop devices and mounts. */
  readonly isRoot: boolean;
  readonly run: RunCommand;
  /** Runs a program that reads an image of a user. In a sandbox, if we are root. */
  readonly runIsolated: RunIsolated;
  /** Returns the free space of the file system of a directory. */
  readonly freeBytes: (path: string) => Promise<number>;
  /** Returns the largest file that the file system of a directory can ever hold. */
  readonly usableBytes: (path: string) => Promise<number>;
}

/** Sizes are rounded up to this: QEMU needs whole sectors, file systems whole pages. */
const PAGE_BYTES = 4096;

export function parseBytes(quantity: IntOrString): number {
  return Math.ceil(quantityToNumber(parseQuantity(String(quantity))) / PAGE_BYTES) * PAGE_BYTES;
}
