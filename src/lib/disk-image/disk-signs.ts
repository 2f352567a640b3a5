/** Recognizes raw disks by the signatures of partition tables, boot sectors, file systems and ISO 9660. Pure. */

/** The number of bytes at the beginning of a disk that contain all signatures. */
export const SIGNS_BYTES = 128 * 1024;

interface DiskSign {
  readonly at: number;
  /** The bytes, as Latin-1. */
  readonly magic: string;
}

const SIGNS: readonly DiskSign[] = [
  // Boot sectors: MBR, FAT, NTFS, exFAT.
  { at: 510, magic: '\x55\xaa' },
  // GPT, with sectors of 512 and 4096 bytes.
  { at: 512, magic: 'EFI PART' },
  { at: 4096, magic: 'EFI PART' },
  // Partition tables of Apple, BSD and Sun.
  { at: 512, magic: 'PM\0\0' },
  { at: 512, magic: '\x57\x45\x56\x82' },
  { at: 508, magic: '\xda\xbe' },
  // ISO 9660, UDF.
  { at: 32_769, magic: 'CD001' },
  { at: 32_769, magic: 'BEA01' },
  // ext2 to ext4, XFS, Btrfs, F2FS, JFS, ReiserFS, bcachefs, EROFS, squashfs, HFS+, APFS, UFS2.
  { at: 1080, magic: '\x53\xef' },
  { at: 0, magic: 'XFSB' },
  { at: 65_600, magic: '_BHRfS_M' },
  { at: 1024, magic: '\x10\x20\xf5\xf2' },
  { at: 32_768, magic: 'JFS1' },
  { at: 65_588, magic: 'ReIsEr' },
  { at: 4120, magic: '\xc6\x85\x73\xf6\x4e\x1a\x45\xca' },
  { at: 1024, magic: '\xe2\xe1\xf5\xe0' },
  { at: 0, magic: 'hsqs' },
  { at: 1024, magic: 'H+' },
  { at: 1024, magic: 'HX' },
  { at: 32, magic: 'NXSB' },
  { at: 66_908, magic: '\x19\x01\x54\x19' },
  // LUKS, LVM, RAID, swap.
  { at: 0, magic: 'LUKS\xba\xbe' },
  { at: 0, magic: 'LABELONE' },
  { at: 512, magic: 'LABELONE' },
  { at: 1024, magic: 'LABELONE' },
  { at: 1536, magic: 'LABELONE' },
  { at: 4096, magic: '\xfc\x4e\x2b\xa9' },
  { at: 4086, magic: 'SWAPSPACE2' },
];

/** Reports whether the first SIGNS_BYTES of a file have a sign of a disk. A file that begins with zeros is a blank disk. */
export function hasDiskSign(beginning: Buffer): boolean {
  const isSet = ({ at, magic }: DiskSign) => beginning.toString('latin1', at, at + magic.length) === magic;
  return SIGNS.some(isSet) || (beginning.length > 0 && beginning.every((byte) => byte === 0));
}
