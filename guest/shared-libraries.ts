/** Finds the shared libraries of a program, from the program itself: 64-bit little-endian ELF, as in Debian. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

const [PT_LOAD, PT_DYNAMIC, PT_INTERP] = [1, 2, 3];
const [DT_NULL, DT_NEEDED, DT_STRTAB] = [0n, 1n, 5n];

/** Returns the files of the program's libraries, of their libraries and of the loader, by name. */
export function librariesFor(program: Buffer, root: string): ReadonlyMap<string, string> {
  const files = new Map(libraryFiles(root).map((path) => [basename(path), path]));
  const found = new Map<string, string>();
  const visit = (name: string, by: string) => {
    if (found.has(name)) return;
    const path = files.get(name);
    if (path === undefined) throw new Error(`Cannot build the guest: no package has ${name}, which ${by} needs`);
    found.set(name, path);
    for (const next of findNeeded(readFileSync(path)).libraries) visit(next, name);
  };
  const { loader, libraries } = findNeeded(program);
  if (loader !== undefined) visit(basename(loader), 'the program');
  for (const name of libraries) visit(name, 'the program');
  return found;
}

/** Returns the names of the libraries, and the path of the loader if the program has one. */
export function findNeeded(elf: Buffer): { readonly loader?: string; readonly libraries: readonly string[] } {
  const segments = segmentsOf(elf);
  const interp = segments.find(({ type }) => type === PT_INTERP);
  const loader = interp && textAt(elf, interp.offset);
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  if (dynamic === undefined) return { libraries: [], ...(loader !== undefined && { loader }) };
  const needed: number[] = [];
  let strings = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) {
    const tag = elf.readBigUInt64LE(at);
    if (tag === DT_NULL) break;
    const value = Number(elf.readBigUInt64LE(at + 8));
    if (tag === DT_NEEDED) needed.push(value);
    if (tag === DT_STRTAB) strings = offsetOf(value, segments);
  }
  return { libraries: needed.map((at) => textAt(elf, strings + at)), ...(loader !== undefined && { loader }) };
}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

function segmentsOf(elf: Buffer): Segment[] {
  if (elf.toString('latin1', 0, 6) !== '\x7fELF\x02\x01') throw new Error('not a 64-bit ELF file');
  const [table, size, count] = [Number(elf.readBigUInt64LE(32)), elf.readUInt16LE(54), elf.readUInt16LE(56)];
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * size;
    const field = (offset: number) => Number(elf.readBigUInt64LE(at + offset));
    return { type: elf.readUInt32LE(at), offset: field(8), address: field(16), size: field(32) };
  });
}

/** Returns the file offset of an address of the running program. */
function offsetOf(address: number, segments: readonly Segment[]): number {
  const within = segments.find(
    (segment) => segment.type === PT_LOAD && address >= segment.address && address < segment.address + segment.size,
  );
  return within === undefined ? address : address - within.address + within.offset;
}

function textAt(elf: Buffer, at: number): string {
  return elf.toString('latin1', at, elf.indexOf(0, at));
}

/** The directories of libraries in Debian's packages, with or without a merged /usr. */
const LIBRARY_DIRS = ['lib64', 'usr/lib64', 'lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu'];

function libraryFiles(root: string): string[] {
  return LIBRARY_DIRS.map((dir) => join(root, dir))
    .filter((dir) => existsSync(dir))
    .flatMap((dir) => readdirSync(dir).map((name) => join(dir, name)));
}
