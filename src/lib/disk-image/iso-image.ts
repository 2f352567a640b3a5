/** Reads the size and the boot catalog (El Torito) of an ISO 9660 image. */
import { readExactly, type ByteSource } from '#lib/disk-image/byte-source.ts';

const BLOCK = 2048;
const FIRST_DESCRIPTOR = 16;
const MAX_DESCRIPTORS = 16;
const BOOT_RECORD = 0;
const PRIMARY = 1;
const END_OF_DESCRIPTORS = 255;
const ENTRY_BYTES = 32;
const BOOTABLE = 0x88;
const SECTION_HEADERS: ReadonlySet<number> = new Set([0x90, 0x91]);
const X86 = 0;
const EFI = 0xef;

interface IsoImage {
  /** The size according to the volume descriptor. */
  readonly volumeBytes: number;
  readonly bootsBios: boolean;
  readonly bootsEfi: boolean;
}

/** Returns undefined if the disk is not an ISO 9660 image, or if its boot catalog is not known. */
export async function readIsoImage(disk: ByteSource): Promise<IsoImage | undefined> {
  let volumeBytes: number | undefined;
  let catalogBlock: number | undefined;
  for (let i = 0; i < MAX_DESCRIPTORS; i++) {
    const block = await readExactly(disk, BLOCK, (FIRST_DESCRIPTOR + i) * BLOCK);
    if (block?.toString('latin1', 1, 6) !== 'CD001') break;
    const type = block.readUInt8(0);
    if (type === END_OF_DESCRIPTORS) break;
    if (type === PRIMARY) volumeBytes = block.readUInt32LE(80) * BLOCK;
    if (type === BOOT_RECORD && block.toString('latin1', 7, 30) === 'EL TORITO SPECIFICATION') {
      catalogBlock = block.readUInt32LE(0x47);
    }
  }
  if (volumeBytes === undefined) return undefined;
  if (catalogBlock === undefined) return { volumeBytes, bootsBios: false, bootsEfi: false };
  const catalog = await readExactly(disk, BLOCK, catalogBlock * BLOCK);
  if (catalog === undefined) return undefined;
  const platforms = platformsOf(catalog);
  return { volumeBytes, bootsBios: platforms.has(X86), bootsEfi: platforms.has(EFI) };
}

/** Returns the platforms with a bootable entry. The first two entries are the header of the catalog and its default. */
function platformsOf(catalog: Buffer): Set<number> {
  const platforms = new Set<number>();
  let platform = catalog.readUInt8(1);
  for (let at = ENTRY_BYTES; at < catalog.length; at += ENTRY_BYTES) {
    const kind = catalog.readUInt8(at);
    if (SECTION_HEADERS.has(kind)) platform = catalog.readUInt8(at + 1);
    else if (kind === BOOTABLE) platforms.add(platform);
  }
  return platforms;
}
