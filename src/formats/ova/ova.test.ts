import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { FileFormatError } from '#formats/findings.ts';
import { checkOvaFile, findMissingFiles } from '#formats/ova/check-ova-file.ts';
import { readOva } from '#formats/ova/read-ova.ts';
import { writeOva, type OvaFile } from '#formats/ova/write-ova.ts';
import type { DescribedDisk } from '#formats/machine.ts';
import { inPieces, TAR_END, tarEntry } from '#lib/tar/testing/tar-archive.ts';

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of chunks) pieces.push(piece);
  return Buffer.concat(pieces);
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

const ovf = tarEntry('vm.ovf', '<x/>');
const sha = (text: string, algorithm = 'sha256') => createHash(algorithm).update(text).digest('hex');

const accepted: Record<string, { bytes: Buffer; want: Record<string, string> }> = {
  'an archive without a manifest': {
    bytes: Buffer.concat([ovf, tarEntry('a', '1'), TAR_END]),
    want: { 'vm.ovf': '<x/>', a: '1' },
  },
  'a SHA1 manifest before the files': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('vm.mf', `SHA1(vm.ovf)= ${sha('<x/>', 'sha1')}\r\nSHA1(a)= ${sha('1', 'sha1')}\r\n`),
      tarEntry('a', '1'),
      TAR_END,
    ]),
    want: { 'vm.ovf': '<x/>', a: '1' },
  },
  'a signature, which is not checked': {
    bytes: Buffer.concat([ovf, tarEntry('vm.cert', 'x'), TAR_END]),
    want: { 'vm.ovf': '<x/>', 'note the signature "vm.cert" is not checked': '' },
  },
};

for (const [name, { bytes, want }] of Object.entries(accepted)) {
  test(`reads ${name}`, async () => assert.deepEqual(await read(bytes), want));
}

const refused: Record<string, { bytes: Buffer; why: RegExp }> = {
  'an empty archive': { bytes: TAR_END, why: /it is empty/ },
  'a truncated archive': {
    bytes: Buffer.concat([ovf, tarEntry('a', 'x'.repeat(2000))]).subarray(0, 1700),
    why: /ends too early/,
  },
  'a damaged header': { bytes: Buffer.concat([Buffer.from(ovf).fill('y', 0, 1), TAR_END]), why: /a header is damaged/ },
  'a descriptor that is not the first': {
    bytes: Buffer.concat([tarEntry('a', '1'), ovf, TAR_END]),
    why: /begins with "a"/,
  },
  'two descriptors': { bytes: Buffer.concat([ovf, tarEntry('b.ovf', ''), TAR_END]), why: /two descriptors/ },
  'two manifests': {
    bytes: Buffer.concat([ovf, tarEntry('a.mf', ''), tarEntry('b.mf', ''), TAR_END]),
    why: /two manifests/,
  },
  'a descriptor that is too long': {
    bytes: Buffer.concat([tarEntry('vm.ovf', '', '0', (block) => block.write('00100000000\0', 124)), TAR_END]),
    why: /has 16777216 bytes, more than 8388608/,
  },
  'a file that does not match the manifest': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('a', '1'),
      tarEntry('vm.mf', `SHA256(vm.ovf)= ${sha('<x/>')}\nSHA256(a)= ${sha('2')}\n`),
      TAR_END,
    ]),
    why: /"a" does not match the manifest/,
  },
  'a file that the manifest does not name, and a missing one': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('a', '1'),
      tarEntry('vm.mf', `SHA256(vm.ovf)= ${sha('<x/>')}\nSHA256(b)= ${sha('2')}\n`),
      TAR_END,
    ]),
    why: /names "b", which is missing; the manifest does not name "a"/,
  },
  'a SHA1 manifest after the files': {
    bytes: Buffer.concat([
      ovf,
      tarEntry('a', '1'),
      tarEntry('vm.mf', `SHA256(vm.ovf)= ${sha('<x/>')}\nSHA1(a)= ${sha('1', 'sha1')}\n`),
      TAR_END,
    ]),
    why: /comes last and has sha1/,
  },
  'an invalid manifest': {
    bytes: Buffer.concat([ovf, tarEntry('vm.mf', 'MD5(a)= 00\n'), TAR_END]),
    why: /line 1 of the manifest/,
  },
};

for (const [name, { bytes, why }] of Object.entries(refused)) {
  test(`refuses ${name}`, async () => {
    await assert.rejects(read(bytes), (error: unknown) => error instanceof FileFormatError && why.test(error.message));
  });
}

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
