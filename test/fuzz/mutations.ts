/**
 * Damages valid inputs: the structure around the damage stays intact, so that it reaches the code behind the first
 * checks of a parser.
 */
import fc from 'fast-check';

export type Mutation = (bytes: Buffer) => Buffer;

/** Numbers at which lengths, counts and offsets overflow, become negative or exceed a limit. */
const EXTREMES = [0n, 1n, 0x7fn, 0x80n, 0xffn, 0x7fffn, 0xffffn, 0x7fff_ffffn, 0x8000_0000n, 0xffff_ffffn];
const LARGE = [2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n];

const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const at = (bytes: Buffer, where: number) => Math.floor(where * bytes.length);

const flipBit = fc.tuple(place, fc.nat(7)).map(([where, bit]): Mutation => (bytes) => {
  const changed = Buffer.from(bytes);
  if (changed.length > 0) changed[at(bytes, where)]! ^= 1 << bit;
  return changed;
});

const truncate = place.map(
  (where): Mutation =>
    (bytes) =>
      bytes.subarray(0, at(bytes, where)),
);

const insert = fc
  .tuple(place, fc.uint8Array({ minLength: 1, maxLength: 8 }))
  .map(([where, piece]): Mutation => (bytes) => {
    const start = at(bytes, where);
    return Buffer.concat([bytes.subarray(0, start), piece, bytes.subarray(start)]);
  });

const remove = fc.tuple(place, fc.integer({ min: 1, max: 16 })).map(([where, count]): Mutation => (bytes) => {
  const start = at(bytes, where);
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(start + count)]);
});

const repeat = fc
  .tuple(place, fc.integer({ min: 1, max: 600 }), fc.integer({ min: 1, max: 40 }))
  .map(([where, length, times]): Mutation => (bytes) => {
    const start = at(bytes, where);
    const piece = bytes.subarray(start, start + length);
    const copies = Array.from({ length: times }, () => piece);
    return Buffer.concat([bytes.subarray(0, start + length), ...copies, bytes.subarray(start + length)]);
  });

const overwriteNumber = fc
  .tuple(place, fc.constantFrom(1, 2, 4, 8), fc.constantFrom(...EXTREMES, ...LARGE), fc.boolean())
  .map(
    ([where, width, value, isLittle]): Mutation =>
      (bytes) =>
        writeNumber(bytes, at(bytes, where), { width, value, isLittle }),
  );

/** Returns the bytes with another number at the offset; fields of binary formats are aligned, so it is rounded down. */
function writeNumber(
  bytes: Buffer,
  offset: number,
  { width, value, isLittle }: { readonly width: number; readonly value: bigint; readonly isLittle: boolean },
): Buffer {
  const changed = Buffer.from(bytes);
  const start = offset - (offset % width);
  const number = Buffer.alloc(8);
  if (isLittle) number.writeBigUInt64LE(value);
  else number.writeBigUInt64BE(value);
  (isLittle ? number.subarray(0, width) : number.subarray(8 - width)).copy(changed, start);
  return changed;
}

/** Some mutations, in order. */
export const byteMutations: fc.Arbitrary<Mutation> = fc
  .array(fc.oneof(flipBit, truncate, insert, remove, repeat, { arbitrary: overwriteNumber, weight: 3 }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((list) => (bytes) => list.reduce((changed, mutate) => mutate(changed), bytes));

/** A change of numbers in the first bytes only, for formats that begin with their most important fields. */
export function headMutations(headBytes: number): fc.Arbitrary<Mutation> {
  const field = fc.tuple(
    fc.nat(headBytes - 1),
    fc.constantFrom(1, 2, 4, 8),
    fc.constantFrom(...EXTREMES, ...LARGE),
    fc.boolean(),
  );
  return fc.array(field, { minLength: 1, maxLength: 3 }).map(
    (fields): Mutation =>
      (bytes) =>
        fields.reduce(
          (changed, [offset, width, value, isLittle]) => writeNumber(changed, offset, { width, value, isLittle }),
          bytes,
        ),
  );
}

/** Cuts bytes into chunks like those of a socket. */
export const chunkSizes: fc.Arbitrary<number> = fc.constantFrom(1, 7, 1000, 65_536);

export function chunksOf(bytes: Buffer, size: number): Buffer[] {
  // A limit for tiny chunks, because each takes a turn of its own.
  const length = Math.max(size, Math.ceil(bytes.length / 300));
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, i) =>
    bytes.subarray(i * length, (i + 1) * length),
  );
}
