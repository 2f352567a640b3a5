import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { FileFormatError } from '#formats/findings.ts';
import { checkOvaFile, findMissingFiles } from '#formats/ova/check-ova-file.ts';
import { TAR_LIMITS, readTar } from '#formats/ova/read-tar.ts';
import { readOva } from '#formats/ova/read-ova.ts';
import { parsePax, parseTarHeader, printTarHeader } from '#formats/ova/tar-header.ts';
import { writeOva, type OvaFile } from '#formats/ova/write-ova.ts';
import type { DescribedDisk } from '#formats/machine.ts';

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of chunks) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Yields the bytes in pieces of `size` bytes. */
async function* inPieces(bytes: Uint8Array, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const plain = (name: string, content: string | Uint8Array): OvaFile => {
  const bytes = Buffer.from(content);
  return { name, size: bytes.length, content: [bytes] };
};

const archive = (files: readonly OvaFile[] = [plain('root.img', 'data'.repeat(1000))], descriptor = '<x/>') =>
  collect(writeOva({ name: 'vm', descriptor, files }));

async function read(bytes: Uint8Array, size?: number): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const part of readOva(inPieces(bytes, size))) {
    if (part.kind === 'note') found[`note ${part.text}`] = '';
    else
      found[part.name] =
        part.kind === 'file' ? (await collect(part.content)).toString() : Buffer.from(part.content).toString();
  }
  return found;
}

test('reads back written files, in pieces of any size and with long names', async () => {
  const name = `${'d'.repeat(90)}/${'é'.repeat(40)}.img`;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 2000 }), { maxLength: 3 }),
      fc.integer({ min: 1, max: 3000 }),
      async (contents, size) => {
        const files = contents.map((content, i) => plain(i === 0 ? name : `f${i}`, content));
        const found: [string, string][] = [];
        for await (const part of readOva(inPieces(await archive(files), size))) {
          if (part.kind !== 'note')
            found.push([
              part.name,
              (part.kind === 'file' ? await collect(part.content) : Buffer.from(part.content)).toString('hex'),
            ]);
        }
        const want = files.map((file, i) => [file.name, Buffer.from(contents[i] ?? []).toString('hex')]);
        assert.deepEqual(found, [['vm.ovf', Buffer.from('<x/>').toString('hex')], ...want]);
      },
    ),
    { numRuns: 40 },
  );
});

test('skips unread content but still verifies it', async () => {
  const parts: string[] = [];
  for await (const part of readOva(inPieces(await archive([plain('a', 'x'.repeat(5000)), plain('b', 'y')])))) {
    parts.push(part.kind);
    if (part.kind === 'file') for await (const piece of part.content) if (piece.length > 0) break;
  }
  assert.deepEqual(parts, ['descriptor', 'file', 'file']);
});

test('supports sizes of more than 8 GiB', () => {
  const size = 9 * 1024 ** 3 + 1;
  const bytes = printTarHeader('big.img', size, 0);
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
  for (let length = 100; length < 130; length++) {
    const name = 'n'.repeat(length);
    const bytes = printTarHeader(name, 1, 0);
    const size = parseTarHeader(bytes.subarray(0, 512))?.size ?? 0;
    if (length > 100) assert.equal(parsePax(bytes.subarray(512, 512 + size)).path, name);
  }
});

/** Returns an entry with a correct checksum after `change` has modified its header. */
function tarEntry(
  name: string,
  content: string | Buffer,
  type = '0',
  change: (block: Buffer) => void = () => undefined,
): Buffer {
  const body = Buffer.from(content);
  const block = Buffer.from(printTarHeader(name.slice(0, 100), body.length, 0).subarray(-512));
  block.write(type, 156, 'latin1');
  change(block);
  block.fill(0x20, 148, 156);
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([block, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

const END = Buffer.alloc(1024);
const ovf = tarEntry('vm.ovf', '<x/>');
const sha = (text: string, algorithm = 'sha256') => createHash(algorithm).update(text).digest('hex');

const accepted: Record<string, { bytes: Buffer; want: Record<string, string> }> = {
  'names with ./ and directories': {
    bytes: Buffer.concat([
      tarEntry('./', '', '5'),
      tarEntry('./vm.ovf', '<x/>'),
      tarEntry('./sub/', '', '5'),
      tarEntry('./sub/a', '1'),
      END,
    ]),
    want: { 'vm.ovf': '<x/>', 'sub/a': '1' },
  },
  'GNU long names': {
    bytes: Buffer.concat([ovf, tarEntry('././@LongLink', `${'l'.repeat(120)}\0`, 'L'), tarEntry('short', '1'), END]),
    want: { 'vm.ovf': '<x/>', ['l'.repeat(120)]: '1' },
  },
  'an archive without a manifest': {
    bytes: Buffer.concat([ovf, tarEntry('a', '1'), END]),
    want: { 'vm.ovf': '<x/>', a: '1' },
  },
  'a SHA1 manifest before the files': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('vm.mf', `SHA1(vm.ovf)= ${sha('<x/>', 'sha1')}\r\nSHA1(a)= ${sha('1', 'sha1')}\r\n`),
      tarEntry('a', '1'),
      END,
    ]),
    want: { 'vm.ovf': '<x/>', a: '1' },
  },
  'a signature, which is not checked': {
    bytes: Buffer.concat([ovf, tarEntry('vm.cert', 'x'), END]),
    want: { 'vm.ovf': '<x/>', 'note the signature "vm.cert" is not checked': '' },
  },
};

for (const [name, { bytes, want }] of Object.entries(accepted)) {
  test(`reads ${name}`, async () => assert.deepEqual(await read(bytes), want));
}

const refused: Record<string, { bytes: Buffer; why: RegExp }> = {
  'zero bytes': { bytes: Buffer.alloc(0), why: /ends too early/ },
  'an empty archive': { bytes: END, why: /it is empty/ },
  'a truncated archive': {
    bytes: Buffer.concat([ovf, tarEntry('a', 'x'.repeat(2000))]).subarray(0, 1700),
    why: /ends too early/,
  },
  'an archive without an end marker': { bytes: ovf, why: /ends too early/ },
  'a file that is not an archive': {
    bytes: Buffer.alloc(2048, 'x'),
    why: /a number in a header is invalid|a header is damaged/,
  },
  'a damaged header': { bytes: Buffer.concat([Buffer.from(ovf).fill('y', 0, 1), END]), why: /a header is damaged/ },
  'a descriptor that is not the first': {
    bytes: Buffer.concat([tarEntry('a', '1'), ovf, END]),
    why: /begins with "a"/,
  },
  'two descriptors': { bytes: Buffer.concat([ovf, tarEntry('b.ovf', ''), END]), why: /two descriptors/ },
  'two manifests': {
    bytes: Buffer.concat([ovf, tarEntry('a.mf', ''), tarEntry('b.mf', ''), END]),
    why: /two manifests/,
  },
  'a descriptor that is too long': {
    bytes: Buffer.concat([tarEntry('vm.ovf', '', '0', (block) => block.write('00100000000\0', 124)), END]),
    why: /has 16777216 bytes, more than 8388608/,
  },
  'a name that leads outside': {
    bytes: Buffer.concat([ovf, tarEntry('../../etc/cron.d/x', '1'), END]),
    why: /leads outside/,
  },
  'an absolute name': {
    bytes: Buffer.concat([ovf, tarEntry('/etc/passwd', '1'), END]),
    why: /is not a relative path/,
  },
  'a long name that leads outside': {
    bytes: Buffer.concat([ovf, tarEntry('././@LongLink', '../x\0', 'L'), tarEntry('short', '1'), END]),
    why: /leads outside/,
  },
  'a pax name that leads outside': {
    bytes: Buffer.concat([ovf, tarEntry('p', '13 path=../x\n', 'x'), tarEntry('short', '1'), END]),
    why: /leads outside/,
  },
  'a pax header with a wrong length': {
    bytes: Buffer.concat([ovf, tarEntry('p', '99 path=x\n', 'x'), END]),
    why: /extended header is damaged/,
  },
  'an invalid pax size': {
    bytes: Buffer.concat([ovf, tarEntry('p', '11 size=-1\n', 'x'), END]),
    why: /a size is invalid/,
  },
  'a sparse file': {
    bytes: Buffer.concat([ovf, tarEntry('p', '22 GNU.sparse.major=1\n', 'x'), END]),
    why: /a sparse format/,
  },
  'a symbolic link': { bytes: Buffer.concat([ovf, tarEntry('a', '', '2'), END]), why: /a link or a device/ },
  'a hard link': { bytes: Buffer.concat([ovf, tarEntry('a', '', '1'), END]), why: /a link or a device/ },
  'a device': { bytes: Buffer.concat([ovf, tarEntry('a', '', '3'), END]), why: /a link or a device/ },
  'a pipe': { bytes: Buffer.concat([ovf, tarEntry('a', '', '6'), END]), why: /a link or a device/ },
  'a directory with content': { bytes: Buffer.concat([ovf, tarEntry('a', 'x', '5'), END]), why: /has content/ },
  'a repeated file': {
    bytes: Buffer.concat([ovf, tarEntry('a', '1'), tarEntry('a', '2'), END]),
    why: /"a" appears twice/,
  },
  'names that are not UTF-8': {
    bytes: Buffer.concat([ovf, tarEntry('a', '1', '0', (block) => block.writeUInt8(0xff, 0)), END]),
    why: /not encoded in UTF-8/,
  },
  'an invalid size': {
    bytes: Buffer.concat([ovf, tarEntry('a', '1', '0', (block) => block.fill(0xff, 124, 136)), END]),
    why: /a size is invalid/,
  },
  'a file that is too large': {
    bytes: Buffer.concat([ovf, tarEntry('p', '25 size=9007199254740991\n', 'x'), tarEntry('a', ''), END]),
    why: /"a" has 9007199254740991 bytes, more than/,
  },
  'too many headers in a row': {
    bytes: Buffer.concat([ovf, ...Array.from({ length: 20 }, () => tarEntry('p', '9 path=x\n', 'x'))]),
    why: /too many headers/,
  },
  'too many files': {
    bytes: Buffer.concat([ovf, ...Array.from({ length: TAR_LIMITS.entries + 1 }, (_, i) => tarEntry(`f${i}`, ''))]),
    why: /more than 1024 files/,
  },
  'a file that does not match the manifest': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('a', '1'),
      tarEntry('vm.mf', `SHA256(vm.ovf)= ${sha('<x/>')}\nSHA256(a)= ${sha('2')}\n`),
      END,
    ]),
    why: /"a" does not match the manifest/,
  },
  'a file that the manifest does not name, and a missing one': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('a', '1'),
      tarEntry('vm.mf', `SHA256(vm.ovf)= ${sha('<x/>')}\nSHA256(b)= ${sha('2')}\n`),
      END,
    ]),
    why: /names "b", which is missing; the manifest does not name "a"/,
  },
  'a SHA1 manifest after the files': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('a', '1'),
      tarEntry('vm.mf', `SHA256(vm.ovf)= ${sha('<x/>')}\nSHA1(a)= ${sha('1', 'sha1')}\n`),
      END,
    ]),
    why: /comes last and has sha1/,
  },
  'an invalid manifest': {
    bytes: Buffer.concat([ovf, tarEntry('vm.mf', 'MD5(a)= 00\n'), END]),
    why: /line 1 of the manifest/,
  },
};

for (const [name, { bytes, why }] of Object.entries(refused)) {
  test(`refuses ${name}`, async () => {
    await assert.rejects(read(bytes), (error: unknown) => error instanceof FileFormatError && why.test(error.message));
  });
}

test('limits the total size of all files', async () => {
  const bytes = Buffer.concat([ovf, tarEntry('a', 'x'.repeat(600)), tarEntry('b', 'x'.repeat(600)), END]);
  const all = async () => {
    for await (const { content } of readTar(inPieces(bytes), { ...TAR_LIMITS, totalBytes: 1000 })) void content;
  };
  await assert.rejects(all(), /more than 1000 bytes/);
});

test('closes the source when the reader stops', async () => {
  let isClosed = false;
  const whole = await archive();
  async function* source() {
    try {
      yield* inPieces(whole);
    } finally {
      isClosed = true;
    }
  }
  for await (const part of readOva(source())) if (part.kind === 'descriptor') break;
  assert.ok(isClosed);
});

test('the writer refuses wrong sizes, unsafe names and repeated files', async () => {
  await assert.rejects(archive([{ name: 'a', size: 2, content: [Buffer.from('1')] }]), /fewer than 2 bytes/);
  await assert.rejects(archive([{ name: 'a', size: 1, content: [Buffer.from('12')] }]), /more than 1 bytes/);
  await assert.rejects(archive([plain('../a', '1')]), /leads outside/);
  await assert.rejects(archive([plain('a', '1'), plain('a', '1')]), /Invariant/);
  assert.deepEqual(await archive(), await archive());
});

test('checks files against the descriptor', () => {
  const disk = { name: 'root', file: 'root.img', sizeBytes: 1000, format: 'raw' } as DescribedDisk;
  assert.equal(checkOvaFile({ disks: [disk] }, { name: 'root.img', size: 1000 }), undefined);
  assert.match(checkOvaFile({ disks: [disk] }, { name: 'root.img', size: 1001 }) ?? '', /has 1001 bytes/);
  assert.match(checkOvaFile({ disks: [disk] }, { name: 'x', size: 1 }) ?? '', /belongs to no disk/);
  assert.equal(checkOvaFile({ disks: [{ ...disk, format: 'qcow2' }] }, { name: 'root.img', size: 70_000 }), undefined);
  const state = { tpm: true, efi: true, file: 'state.bin' };
  assert.equal(checkOvaFile({ disks: [disk], state }, { name: 'state.bin', size: 16 * 1024 ** 2 }), undefined);
  assert.match(
    checkOvaFile({ disks: [disk], state }, { name: 'state.bin', size: 16 * 1024 ** 2 + 1 }) ?? '',
    /more than a persistent state may have/,
  );
  assert.deepEqual(findMissingFiles({ disks: [disk] }, new Set(['a'])), ['root.img']);
});
