/** Builds a disk image that firmware can read: FAT16 with files in its root directory, by their 8.3 names. Pure. */
const SECTOR = 512;
const SECTORS_PER_CLUSTER = 4;
const CLUSTER = SECTOR * SECTORS_PER_CLUSTER;
const FATS = 2;
const ROOT_ENTRIES = 512;
const END_OF_CHAIN = 0xffff;

/** Returns an image of `bytes`, which must be a valid size for FAT16: 16 to 128 MiB here. */
export function buildFatImage(bytes: number, files: Readonly<Record<string, Buffer>>): Buffer {
  const image = Buffer.alloc(bytes);
  const sectors = bytes / SECTOR;
  const fatSectors = Math.ceil(((sectors / SECTORS_PER_CLUSTER + 2) * 2) / SECTOR);
  const rootAt = (1 + FATS * fatSectors) * SECTOR;
  const dataAt = rootAt + ROOT_ENTRIES * 32;
  writeBootSector(image, sectors, fatSectors);
  const fat = new Uint16Array((fatSectors * SECTOR) / 2);
  fat.set([0xfff8, END_OF_CHAIN]);
  let next = 2;
  for (const [i, [name, content]] of Object.entries(files).entries()) {
    const first = next;
    const clusters = Math.ceil(content.length / CLUSTER);
    next += clusters;
    for (let cluster = first; cluster < next; cluster++) fat[cluster] = cluster + 1 < next ? cluster + 1 : END_OF_CHAIN;
    content.copy(image, dataAt + (first - 2) * CLUSTER);
    writeEntry(image.subarray(rootAt + i * 32), name, clusters === 0 ? 0 : first, content.length);
  }
  for (let copy = 0; copy < FATS; copy++) {
    const at = (1 + copy * fatSectors) * SECTOR;
    for (const [i, value] of fat.entries()) image.writeUInt16LE(value, at + i * 2);
  }
  return image;
}

function writeBootSector(image: Buffer, sectors: number, fatSectors: number): void {
  image.set([0xeb, 0x3c, 0x90]);
  image.write('SELFSAME', 3, 'latin1');
  image.writeUInt16LE(SECTOR, 11);
  image.writeUInt8(SECTORS_PER_CLUSTER, 13);
  image.writeUInt16LE(1, 14);
  image.writeUInt8(FATS, 16);
  image.writeUInt16LE(ROOT_ENTRIES, 17);
  image.writeUInt8(0xf8, 21);
  image.writeUInt16LE(fatSectors, 22);
  image.writeUInt16LE(63, 24);
  image.writeUInt16LE(255, 26);
  image.writeUInt32LE(sectors, 32);
  image.set([0x80, 0, 0x29], 36);
  image.write('NO NAME    FAT16   ', 43, 'latin1');
  image.set([0x55, 0xaa], 510);
}

function writeEntry(entry: Buffer, name: string, cluster: number, bytes: number): void {
  const [base = '', extension = ''] = name.toUpperCase().split('.');
  entry.write(base.padEnd(8) + extension.padEnd(3), 0, 'latin1');
  entry.writeUInt8(0x20, 11);
  entry.writeUInt16LE(cluster, 26);
  entry.writeUInt32LE(bytes, 28);
}
