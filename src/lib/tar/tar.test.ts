import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { TAR_LIMITS, readTar } from '#lib/tar/read-tar.ts';
import { parsePax, parseTarHeader, printTarHeader, TarError } from '#lib/tar/tar-header.ts';
import { inPieces, TAR_END, tarEntry } from '#lib/tar/testing/tar-archive.ts';
import { tarFile, writeTar, type TarEntry } from '#lib/tar/write-tar.ts';

const GIB = 1024 ** 3;
const HEADER = { type: 'file', mode: 0o644, modifiedSeconds: 0 } as const;

async function read(bytes: Uint8Array, size?: number): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { name, content } of readTar(inPieces(bytes, size))) {
    found[name] = Buffer.concat(await Array.fromAsync(content)).toString();
  }
  return found;
}

const write = async (entries: readonly TarEntry[]) => Buffer.concat(await Array.fromAsync(writeTar(entries)));

test('the size of a file can be more than 8 GiB, in the formats of POSIX and GNU', () => {
  const size = 9 * GIB + 1;
  const bytes = printTarHeader({ ...HEADER, name: 'big.img', size });
  assert.equal(parseTarHeader(bytes.subarray(0, 512))?.type, 'pax');
  assert.equal(parsePax(bytes.subarray(512, 512 + (parseTarHeader(bytes.subarray(0, 512))?.size ?? 0))).size, size);
  const gnu = tarEntry('big.img', '', '0', (block) => {
    block.fill(0, 124, 136);
    block.writeUInt8(0x80, 124);
    block.writeBigUInt64BE(BigInt(size), 128);
  });
  assert.equal(parseTarHeader(gnu.subarray(0, 512))?.size, size);
});

test('the length of a pax record includes its own digits', () => {
  for (let length = 101; length < 130; length++) {
    const name = 'n'.repeat(length);
    const bytes = printTarHeader({ ...HEADER, name, size: 1 });
    const size = parseTarHeader(bytes.subarray(0, 512))?.size ?? 0;
    assert.equal(parsePax(bytes.subarray(512, 512 + size)).path, name);
  }
});

const first = tarEntry('first', '<x/>');

const accepted: Record<string, { bytes: Buffer; want: Record<string, string> }> = {
  'names with ./ and directories': {
    bytes: Buffer.concat([
      tarEntry('./', '', '5'),
      tarEntry('./first', '<x/>'),
      tarEntry('./sub/', '', '5'),
      tarEntry('./sub/a', '1'),
      TAR_END,
    ]),
    want: { first: '<x/>', 'sub/a': '1' },
  },
  'GNU long names': {
    bytes: Buffer.concat([
      first,
      tarEntry('././@LongLink', `${'l'.repeat(120)}\0`, 'L'),
      tarEntry('short', '1'),
      TAR_END,
    ]),
    want: { first: '<x/>', ['l'.repeat(120)]: '1' },
  },
};

for (const [name, { bytes, want }] of Object.entries(accepted)) {
  test(`reads ${name}`, async () => assert.deepEqual(await read(bytes), want));
}

const refused: Record<string, { bytes: Buffer; why: RegExp }> = {
  'zero bytes': { bytes: Buffer.alloc(0), why: /ends too early/ },
  'an archive without an end marker': { bytes: first, why: /ends too early/ },
  'a file that is not an archive': {
    bytes: Buffer.alloc(2048, 'x'),
    why: /a number in a header is invalid|a header is damaged/,
  },
  'a name that leads outside': {
    bytes: Buffer.concat([first, tarEntry('../../etc/cron.d/x', '1'), TAR_END]),
    why: /leads outside/,
  },
  'an absolute name': {
    bytes: Buffer.concat([first, tarEntry('/etc/passwd', '1'), TAR_END]),
    why: /is not a relative path/,
  },
  'a long name that leads outside': {
    bytes: Buffer.concat([first, tarEntry('././@LongLink', '../x\0', 'L'), tarEntry('short', '1'), TAR_END]),
    why: /leads outside/,
  },
  'a pax name that leads outside': {
    bytes: Buffer.concat([first, tarEntry('p', '13 path=../x\n', 'x'), tarEntry('short', '1'), TAR_END]),
    why: /leads outside/,
  },
  'a pax header with a wrong length': {
    bytes: Buffer.concat([first, tarEntry('p', '99 path=x\n', 'x'), TAR_END]),
    why: /extended header is damaged/,
  },
  'an invalid pax size': {
    bytes: Buffer.concat([first, tarEntry('p', '11 size=-1\n', 'x'), TAR_END]),
    why: /a size is invalid/,
  },
  'a sparse file': {
    bytes: Buffer.concat([first, tarEntry('p', '22 GNU.sparse.major=1\n', 'x'), TAR_END]),
    why: /a sparse format/,
  },
  'a symbolic link': { bytes: Buffer.concat([first, tarEntry('a', '', '2'), TAR_END]), why: /a link or a device/ },
  'a hard link': { bytes: Buffer.concat([first, tarEntry('a', '', '1'), TAR_END]), why: /a link or a device/ },
  'a device': { bytes: Buffer.concat([first, tarEntry('a', '', '3'), TAR_END]), why: /a link or a device/ },
  'a pipe': { bytes: Buffer.concat([first, tarEntry('a', '', '6'), TAR_END]), why: /a link or a device/ },
  'a directory with content': { bytes: Buffer.concat([first, tarEntry('a', 'x', '5'), TAR_END]), why: /has content/ },
  'a repeated file': {
    bytes: Buffer.concat([first, tarEntry('a', '1'), tarEntry('a', '2'), TAR_END]),
    why: /"a" appears twice/,
  },
  'names that are not UTF-8': {
    bytes: Buffer.concat([first, tarEntry('a', '1', '0', (block) => block.writeUInt8(0xff, 0)), TAR_END]),
    why: /not encoded in UTF-8/,
  },
  'an invalid size': {
    bytes: Buffer.concat([first, tarEntry('a', '1', '0', (block) => block.fill(0xff, 124, 136)), TAR_END]),
    why: /a size is invalid/,
  },
  'a file that is too large': {
    bytes: Buffer.concat([first, tarEntry('p', '25 size=9007199254740991\n', 'x'), tarEntry('a', ''), TAR_END]),
    why: /"a" has 9007199254740991 bytes, more than/,
  },
  'too many headers in a row': {
    bytes: Buffer.concat([first, ...Array.from({ length: 20 }, () => tarEntry('p', '9 path=x\n', 'x'))]),
    why: /too many headers/,
  },
  'too many files': {
    bytes: Buffer.concat([first, ...Array.from({ length: TAR_LIMITS.entries + 1 }, (_, i) => tarEntry(`f${i}`, ''))]),
    why: /more than 1024 files/,
  },
};

for (const [name, { bytes, why }] of Object.entries(refused)) {
  test(`refuses ${name}`, async () => {
    await assert.rejects(read(bytes), (error: unknown) => error instanceof TarError && why.test(error.message));
  });
}

test('limits the total size of all files', async () => {
  const bytes = Buffer.concat([tarEntry('a', 'x'.repeat(600)), tarEntry('b', 'x'.repeat(600)), TAR_END]);
  const all = async () => {
    for await (const { content } of readTar(inPieces(bytes), { ...TAR_LIMITS, totalBytes: 1000 })) void content;
  };
  await assert.rejects(all(), /more than 1000 bytes/);
});

/** Names at every limit of the header: name field, prefix, and longer than both. */
const NAMES = [
  'plain',
  'dir/in a directory',
  'é-ü.img',
  'n'.repeat(100),
  'n'.repeat(101),
  `${'d'.repeat(90)}/${'e'.repeat(60)}/file`,
  `${'d'.repeat(155)}/${'f'.repeat(100)}`,
  `${'d'.repeat(156)}/${'f'.repeat(101)}`,
  `${'é'.repeat(60)}/${'ü'.repeat(100)}`,
];
const contentOf = (name: string) => `content of ${name}`.repeat(40);

function temporaryDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-tar-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The archivers of others, with the environment in which they handle UTF-8. */
const run = (program: string, args: readonly string[]) =>
  execFileSync(program, args, { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' }, stdio: ['ignore', 'pipe', 'pipe'] });

for (const program of ['tar', 'bsdtar']) {
  test(`${program} reads what we write`, async (t) => {
    const dir = temporaryDir(t);
    const archive = join(dir, 'a.tar');
    const files = NAMES.map((name) => tarFile(name, contentOf(name)));
    const folder = { type: 'directory', name: 'empty', mode: 0o1777 } as const;
    writeFileSync(archive, await write([folder, { ...tarFile('run', ''), mode: 0o755 }, ...files]));
    const root = join(dir, 'root');
    mkdirSync(root);
    run(program, ['-xpf', archive, '-C', root]);
    for (const name of NAMES) assert.equal(readFileSync(join(root, name), 'utf8'), contentOf(name));
    assert.equal(statSync(join(root, 'empty')).mode & 0o7777, 0o1777);
    assert.equal(statSync(join(root, 'run')).mode & 0o7777, 0o755);
  });

  test(`${program} reads the size of a large file that we write`, (t) => {
    const archive = join(temporaryDir(t), 'a.tar');
    const size = 9 * GIB;
    const header = printTarHeader({ ...HEADER, name: 'big.img', size });
    // The content is a hole, which takes no space.
    const file = openSync(archive, 'w');
    writeSync(file, header);
    ftruncateSync(file, header.length + size + TAR_END.length);
    closeSync(file);
    assert.match(run(program, ['-tvf', archive]).toString(), new RegExp(`\\b${size}\\b.*big\\.img`));
  });
}

const formats = { tar: ['ustar', 'pax', 'gnu'], bsdtar: ['ustar', 'pax', 'gnutar'] };
for (const [program, format] of Object.entries(formats).flatMap(([p, all]) => all.map((f) => [p, f] as const))) {
  test(`reads what ${program} writes in the format ${format}`, async (t) => {
    const dir = temporaryDir(t);
    // The others need an extended header.
    const fitsUstar = (name: string) => printTarHeader({ ...HEADER, name, size: 0 }).length === 512;
    const names = format === 'ustar' ? NAMES.filter(fitsUstar) : NAMES;
    for (const name of names) {
      mkdirSync(join(dir, 'root', dirname(name)), { recursive: true });
      writeFileSync(join(dir, 'root', name), contentOf(name));
    }
    run(program, [
      `--format=${format}`,
      '-cf',
      join(dir, 'a.tar'),
      '-C',
      join(dir, 'root'),
      ...(format === 'ustar' ? names : ['.']),
    ]);
    const found = await read(readFileSync(join(dir, 'a.tar')), 4096);
    assert.deepEqual(found, Object.fromEntries(Object.keys(found).map((name) => [name, contentOf(name)])));
    assert.deepEqual(Object.keys(found).toSorted(), names.toSorted());
  });
}

for (const [program, format] of [
  ['tar', 'pax'],
  ['tar', 'gnu'],
  ['bsdtar --no-read-sparse', 'pax'],
  ['bsdtar', 'gnutar'],
]) {
  test(`reads the size of a large file that ${program} writes in the format ${format}`, async (t) => {
    const dir = temporaryDir(t);
    const size = 9 * GIB;
    const file = openSync(join(dir, 'big.img'), 'w');
    ftruncateSync(file, size);
    closeSync(file);
    // Only the beginning: the archive has 9 GiB.
    const start = run('sh', [
      '-c',
      `${program} --format=${format} -cf - -C "$1" big.img 2>/dev/null | head -c 8192`,
      'sh',
      dir,
    ]);
    for await (const { name, size: found } of readTar(inPieces(start))) {
      assert.deepEqual([name, found], ['big.img', size]);
      break;
    }
  });
}

test('the writer refuses wrong sizes and unsafe names', async () => {
  await assert.rejects(write([{ ...tarFile('a', '1'), size: 2 }]), /Cannot archive "a": it has fewer than 2 bytes/);
  await assert.rejects(write([{ ...tarFile('a', '12'), size: 1 }]), /more than 1 bytes/);
  await assert.rejects(write([tarFile('../a', '1')]), /Cannot archive "..\/a": the name leads outside/);
  await assert.rejects(write([{ type: 'directory', name: '/a' }]), /is not a relative path/);
});
