/** Archives that somebody imports: tar and OVA, with damaged headers, sizes, names and manifests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FileFormatError } from '#formats/findings.ts';
import { readOva } from '#formats/ova/read-ova.ts';
import { writeOva } from '#formats/ova/write-ova.ts';
import { PLAIN_OVF } from '#formats/testing/plain-ovf.ts';
import { checkPath } from '#lib/files/safe-path.ts';
import { readTar, readWhole } from '#lib/tar/read-tar.ts';
import { TarError } from '#lib/tar/tar-header.ts';
import { inPieces, TAR_END, tarEntry } from '#lib/tar/testing/tar-archive.ts';
import { checkInputs, expectedError } from '#test/fuzz/check-inputs.ts';
import { byteMutations, type Mutation } from '#test/fuzz/mutations.ts';

const NAMES = [
  'disk.img',
  'a/b',
  '../x',
  '/x',
  'a//b',
  './a',
  '.',
  '',
  'x'.repeat(100),
  'é',
  '\xff',
  'a\0b',
  'con',
  'a\\b',
];
const TYPES = ['0', '\0', '5', 'L', 'K', 'x', 'g', '1', '2', 'S', '7'];
const SIZES = [
  '77777777777',
  '00000000000',
  '-1',
  '9',
  '',
  '\x80\0\0\0\0\0\0\0\0\0\0\x01',
  `\x80${'\xff'.repeat(11)}`,
  `\xff${'\xff'.repeat(11)}`,
];
const PAX = [
  '30 path=x\n',
  '12 path=a/b\n',
  '99999 path=x\n',
  '0 \n',
  '20 size=18014398509\n',
  '9 size=-1\n',
  '11 size=1e9\n',
  '25 GNU.sparse.size=10000\n',
  ' ',
  '-5 a=b\n',
];

const entry = fc
  .record({
    name: fc.constantFrom(...NAMES),
    type: fc.constantFrom(...TYPES),
    content: fc.oneof(fc.constantFrom(...PAX), fc.string({ maxLength: 700 })),
    size: fc.option(fc.constantFrom(...SIZES)),
  })
  .map(({ name, type, content, size }) =>
    tarEntry(name, content, type, (block) => {
      if (size === null) return;
      block.fill(0, 124, 136);
      block.write(size, 124, 'latin1');
    }),
  );
const pieceSizes = fc.constantFrom(13, 512, 700, 65_536);
const unchanged: Mutation = (bytes) => bytes;

async function readAll(bytes: Buffer, pieceSize: number): Promise<void> {
  const names = new Set<string>();
  for await (const file of readTar(inPieces(bytes, pieceSize))) {
    assert.equal(checkPath(file.name), undefined, `the name ${JSON.stringify(file.name)} is safe`);
    assert.ok(!names.has(file.name), 'each name appears once');
    names.add(file.name);
    const content = await readWhole(file, bytes.length);
    assert.equal(content.length, file.size);
  }
}

test('no tar archive crashes its reader, yields an unsafe name or blocks the event loop', (t) =>
  checkInputs(
    t,
    {
      runs: 600,
      values: fc.tuple(
        fc.array(entry, { minLength: 1, maxLength: 6 }).map((entries) => Buffer.concat([...entries, TAR_END])),
        fc.oneof(fc.constant(unchanged), byteMutations),
        pieceSizes,
      ),
      always: [
        [Buffer.concat(Array.from({ length: 20_000 }, (_, i) => tarEntry(`f${i}`, ''))), unchanged, 65_536],
        [Buffer.concat(Array.from({ length: 20_000 }, () => tarEntry('d', '', '5'))), unchanged, 65_536],
        [
          Buffer.concat(Array.from({ length: 7 }, () => tarEntry('d', '6 a=b\n'.repeat(10_000), 'x'))),
          unchanged,
          65_536,
        ],
      ],
    },
    async ([archive, mutate, pieceSize]) =>
      void (await expectedError([TarError], () => readAll(mutate(archive), pieceSize))),
  ));

async function anOva(): Promise<Buffer> {
  const disk = Buffer.alloc(3000, 'disk');
  const files = [{ name: 'disk.img', size: disk.length, content: [disk] }];
  return Buffer.concat(await Array.fromAsync(writeOva({ name: 'vm', descriptor: PLAIN_OVF, files })));
}

test('no OVA crashes its reader, and a damaged one is never read to its end', async (t) => {
  const valid = await anOva();
  const readParts = async (bytes: Buffer, pieceSize: number) => {
    const contents: string[] = [];
    for await (const part of readOva(inPieces(bytes, pieceSize))) {
      if (part.kind === 'descriptor') contents.push(Buffer.from(part.content).toString('latin1'));
      if (part.kind === 'file') contents.push(Buffer.concat(await Array.fromAsync(part.content)).toString('latin1'));
    }
    return contents.join();
  };
  const whole = await readParts(valid, 512);
  await checkInputs(t, { runs: 500, values: fc.tuple(byteMutations, pieceSizes) }, async ([mutate, pieceSize]) => {
    const bytes = mutate(valid);
    let read: string | undefined;
    const error = await expectedError([FileFormatError], async () => {
      read = await readParts(bytes, pieceSize);
    });
    // The manifest protects the content. Only an archive that lost it may have other content.
    if (error === undefined && bytes.includes('vm.mf\0')) assert.equal(read, whole);
  });
});
