/** Writes cpio archives in the "newc" format, which kernels accept as initramfs. */

const EMPTY = Buffer.alloc(0);
const [DIRECTORY, FILE, DEVICE] = [0o040000, 0o100000, 0o020000];

export class CpioArchive {
  readonly #parts: Buffer[] = [];
  #inode = 1;

  directory(name: string): void {
    this.#add(name, DIRECTORY | 0o755);
  }

  file(name: string, data: Buffer, mode: number): void {
    this.#add(name, FILE | mode, data);
  }

  device(name: string, major: number, minor: number): void {
    this.#add(name, DEVICE | 0o666, undefined, [major, minor]);
  }

  end(): Buffer {
    this.#add('TRAILER!!!', 0);
    return Buffer.concat(this.#parts);
  }

  #add(name: string, mode: number, data: Buffer = EMPTY, [major, minor]: readonly [number, number] = [0, 0]): void {
    const nameBytes = Buffer.from(`${name}\0`);
    const [uid, gid, links, mtime, checksum] = [0, 0, 1, 0, 0];
    const fields = [
      this.#inode++,
      mode,
      uid,
      gid,
      links,
      mtime,
      data.length,
      0,
      0,
      major,
      minor,
      nameBytes.length,
      checksum,
    ];
    const header = `070701${fields.map((value) => value.toString(16).padStart(8, '0')).join('')}`;
    this.#parts.push(pad(Buffer.concat([Buffer.from(header), nameBytes])), pad(data));
  }
}

function pad(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}
