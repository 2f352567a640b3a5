/** What every part of volumes/ is given, and how it says that a volume is not ready. */
import { parseQuantity, quantityToNumber } from '#kube/quantity.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';
import type { PreparedVolume } from '#node/volumes-port.ts';
import type { RunCommand } from './run-command.ts';

/** `waiting` is worth another look later, `failed` is not. */
export interface Refusal {
  readonly is: 'waiting' | 'failed';
  readonly reason: string;
  readonly message: string;
  /** There is nothing where it should be: a guest may do without it, where its disk is optional. */
  readonly isMissing?: true;
}

export type Prepared = { readonly is: 'ready'; readonly volume: PreparedVolume } | Refusal;

export function waiting(reason: string, message: string): Refusal {
  return { is: 'waiting', reason, message };
}

/** Waiting for somebody to put it there. */
export function missing(reason: string, message: string): Refusal {
  return { is: 'waiting', reason, message, isMissing: true };
}

export function failed(reason: string, message: string): Refusal {
  return { is: 'failed', reason, message };
}

export function isRefusal(value: object | undefined): value is Refusal {
  return value !== undefined && 'is' in value && (value.is === 'waiting' || value.is === 'failed');
}

export interface GuestUser {
  readonly uid: number;
  readonly gid: number;
}

/** The machine as far as volumes are concerned. Directories without links in their paths. */
export interface VolumesHost {
  readonly nodeName: string;
  readonly nodeDir: string;
  readonly sharedDir: string;
  /** Below these a hostDisk may lie. */
  readonly hostDiskDirs: readonly string[];
  /** /dev: where the names of block devices are. */
  readonly devDir: string;
  /** Whom disks belong to; absent where we are not root and guests run as we do. */
  readonly guestUser: GuestUser | undefined;
  /** Whether we may make block devices of files. */
  readonly isRoot: boolean;
  readonly run: RunCommand;
  /** What a file system has left for us, by a directory in it. */
  readonly freeBytes: (path: string) => Promise<number>;
}

/** QEMU counts media in sectors, file systems in pages. */
const PAGE_BYTES = 4096;

export function bytesOf(quantity: IntOrString): number {
  return Math.ceil(quantityToNumber(parseQuantity(String(quantity))) / PAGE_BYTES) * PAGE_BYTES;
}
