import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { CpioArchive } from './cpio.ts';
import { dependenciesOf, loadOrder } from './kernel-modules.ts';
import { librariesFor, findNeeded } from './shared-libraries.ts';

const aModule = (depends: string) => Buffer.from(`ELF\0license=GPL\0depends=${depends}\0name=x\0`);

test('orders modules after their dependencies, each once', () => {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-guest-'));
  try {
    mkdirSync(join(dir, '6.1/kernel'), { recursive: true });
    const modules = { virtio: '', virtio_ring: 'virtio', virtio_net: 'virtio,virtio-ring', virtio_blk: 'virtio' };
    for (const [name, depends] of Object.entries(modules)) {
      writeFileSync(join(dir, '6.1/kernel', `${name}.ko`), aModule(depends));
    }
    const order = loadOrder(dir, ['virtio_net', 'virtio-blk']).map((path) => basename(path));
    assert.deepEqual(order, ['virtio.ko', 'virtio_ring.ko', 'virtio_net.ko', 'virtio_blk.ko']);
    assert.throws(() => loadOrder(dir, ['e1000e']), /the kernel has no module e1000e, which the guest needs/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('finds no dependencies of a module without any', () => {
  assert.deepEqual(dependenciesOf(aModule('')), []);
  assert.deepEqual(dependenciesOf(Buffer.from('no information at all')), []);
});

test('writes archives that a kernel reads: aligned entries with hexadecimal headers, and a trailer', () => {
  const archive = new CpioArchive();
  archive.directory('bin');
  archive.file('bin/x', Buffer.from('hello'), 0o755);
  const bytes = archive.end();
  const names: string[] = [];
  for (let at = 0; at < bytes.length;) {
    assert.equal(bytes.toString('latin1', at, at + 6), '070701');
    const field = (index: number) => parseInt(bytes.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16);
    const [size, nameSize] = [field(6), field(11)];
    names.push(`${bytes.toString('latin1', at + 110, at + 109 + nameSize)} ${field(1).toString(8)} ${size}`);
    const data = Math.ceil((at + 110 + nameSize) / 4) * 4;
    at = Math.ceil((data + size) / 4) * 4;
  }
  assert.deepEqual(names, ['bin 40755 0', 'bin/x 100755 5', 'TRAILER!!! 0 0']);
});

/** Returns an ELF file with one segment, its dynamic section at 0x200 and its strings at 0x300. */
function anElf(loader: string, libraries: readonly string[]): Buffer {
  const elf = Buffer.alloc(0x600);
  elf.write('\x7fELF\x02\x01', 'latin1');
  elf.writeBigUInt64LE(64n, 32);
  elf.writeUInt16LE(56, 54);
  elf.writeUInt16LE(3, 56);
  const segment = (index: number, type: number, offset: number, address: number, size: number) => {
    const at = 64 + index * 56;
    elf.writeUInt32LE(type, at);
    elf.writeBigUInt64LE(BigInt(offset), at + 8);
    elf.writeBigUInt64LE(BigInt(address), at + 16);
    elf.writeBigUInt64LE(BigInt(size), at + 32);
  };
  segment(0, 1, 0, 0x10000, elf.length);
  segment(1, 2, 0x200, 0x10200, 0x100);
  segment(2, 3, 0x500, 0x10500, 0x100);
  elf.write(`${loader}\0`, 0x500, 'latin1');
  let text = 1;
  const entries: [number, number][] = [[5, 0x10300]];
  for (const name of libraries) {
    elf.write(`${name}\0`, 0x300 + text, 'latin1');
    entries.push([1, text]);
    text += name.length + 1;
  }
  entries.forEach(([tag, value], index) => {
    elf.writeBigUInt64LE(BigInt(tag), 0x200 + index * 16);
    elf.writeBigUInt64LE(BigInt(value), 0x208 + index * 16);
  });
  return elf;
}

test('finds the loader and the libraries of a program', () => {
  const program = anElf('/lib64/ld.so', ['libglib.so.0', 'libc.so.6']);
  assert.deepEqual(findNeeded(program), { loader: '/lib64/ld.so', libraries: ['libglib.so.0', 'libc.so.6'] });
  assert.throws(() => findNeeded(Buffer.from('#!/bin/sh\n')), /not a 64-bit ELF file/);
});

test('finds the libraries of libraries, and throws if no package has one', () => {
  const root = mkdtempSync(join(tmpdir(), 'selfsame-guest-'));
  try {
    const dir = join(root, 'usr/lib/x86_64-linux-gnu');
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'ld.so'), anElf('', []));
    writeFileSync(join(dir, 'liba.so'), anElf('', ['libb.so']));
    writeFileSync(join(dir, 'libb.so'), anElf('', ['liba.so']));
    const program = anElf('/lib64/ld.so', ['liba.so']);
    assert.deepEqual([...librariesFor(program, root).keys()], ['ld.so', 'liba.so', 'libb.so']);
    assert.throws(() => librariesFor(anElf('/lib64/ld.so', ['libz.so']), root), /no package has libz\.so/);
  } finally {
    rmSync(root, { recursive: true });
  }
});
