import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { CpioArchive } from './cpio.ts';
import { dependenciesOf, loadOrder } from './kernel-modules.ts';

const aModule = (depends: string) => Buffer.from(`ELF\0license=GPL\0depends=${depends}\0name=x\0`);

test('modules come after those that they stand on, each once', () => {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-guest-'));
  try {
    mkdirSync(join(dir, '6.1/kernel'), { recursive: true });
    const modules = { virtio: '', virtio_ring: 'virtio', virtio_net: 'virtio,virtio-ring', virtio_blk: 'virtio' };
    for (const [name, depends] of Object.entries(modules)) {
      writeFileSync(join(dir, '6.1/kernel', `${name}.ko`), aModule(depends));
    }
    const order = loadOrder(dir, ['virtio_net', 'virtio-blk']).map((path) => basename(path));
    assert.deepEqual(order, ['virtio.ko', 'virtio_ring.ko', 'virtio_net.ko', 'virtio_blk.ko']);
    assert.throws(() => loadOrder(dir, ['e1000e']), /the kernel has no module e1000e, which the guest wants/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('a module that stands on nothing says so', () => {
  assert.deepEqual(dependenciesOf(aModule('')), []);
  assert.deepEqual(dependenciesOf(Buffer.from('no information at all')), []);
});

test('an archive is what a kernel reads: aligned entries with hexadecimal headers, and a trailer', () => {
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
