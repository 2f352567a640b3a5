/**
 * The smallest guest that responds: a boot sector that prints `echo guest ready`, echoes input of its serial console,
 * and shuts down when the power button is pressed or a `!` arrives. It boots in about a second, even without KVM.
 */
import { truncate, writeFile } from 'node:fs/promises';
import type { DiskDevice } from '#node/hardware/domain-definition.ts';

export const READY = 'echo guest ready\n';
export const SHUT_DOWN = '!';

const DISK_BYTES = 1024 * 1024;
const SIGNATURE_AT = 510;

/** 16-bit code at 0x7c00. The power management registers of q35 are at 0x600 (status), 0x602 (enable), 0x604 (control). */
const CODE = [
  ...[0x31, 0xc0, 0x8e, 0xd8], // ds = 0
  ...[0xba, 0x02, 0x06, 0xb8, 0x00, 0x01, 0xef], // enable the power button
  ...[0xbe, 0x3f, 0x7c, 0xba, 0xf8, 0x03], // si = READY, dx = COM1
  ...[0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8], // print it
  ...[0xba, 0x00, 0x06, 0xed, 0xf6, 0xc4, 0x01, 0x75, 0x14], // button pressed: off
  ...[0xba, 0xfd, 0x03, 0xec, 0xa8, 0x01, 0x74, 0xef], // no input: poll again
  ...[0xba, 0xf8, 0x03, 0xec, 0x3c, 0x21, 0x74, 0x04], // `!`: off
  ...[0xee, 0xeb, 0xe4, 0x90], // echo, poll again
  ...[0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef, 0xeb, 0xfe], // off: S5
];

/** 16-bit code that writes a sector to the boot disk, whose number the BIOS passes in dl, and then waits. */
const WRITING_CODE = [
  ...[0x31, 0xc0, 0x8e, 0xc0, 0xbb, 0x00, 0x7c], // es:bx = this sector
  ...[0xb8, 0x01, 0x03, 0xb9, 0x3f, 0x00, 0xb6, 0x00, 0xcd, 0x13], // write it to sector 63
  ...[0xeb, 0xfe], // wait
];
/** The place of the sector that the guest of writeWritingDisk writes. */
export const WRITTEN_SECTOR_AT = 62 * 512;

export async function writeEchoDisk(path: string): Promise<void> {
  await writeFile(path, bootSector([...CODE, ...Buffer.from(READY)], DISK_BYTES));
}

/** Writes only the first sector of the disk; the rest is a hole. */
export async function writeWritingDisk(path: string): Promise<void> {
  await writeFile(path, bootSector(WRITING_CODE, SIGNATURE_AT + 2));
  await truncate(path, DISK_BYTES);
}

function bootSector(code: readonly number[], bytes: number): Buffer {
  const image = Buffer.alloc(bytes);
  Buffer.from(code).copy(image);
  image.writeUInt16LE(0xaa55, SIGNATURE_AT);
  return image;
}

export function echoDisk(path: string): DiskDevice {
  return {
    type: 'disk',
    id: 'disk-echo',
    name: 'echo',
    media: 'disk',
    bus: 'virtio',
    source: { path, format: 'raw' },
    readonly: false,
    cache: 'writeback',
    bootOrder: 1,
    address: { type: 'pci', domain: '0x0000', bus: '0x02', slot: '0x00', function: '0x0' },
  };
}
