import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { addQuantities, compareQuantities, formatQuantity, parseQuantity, quantityToNumber } from '#kube/quantity.ts';

/** A text, its canonical form as printed by resource.Quantity, and its value as a number. */
const good: [string, string, number][] = [
  ['0', '0', 0],
  ['-0', '0', 0],
  ['0Gi', '0', 0],
  ['1', '1', 1],
  ['1.5', '1500m', 1.5],
  ['.5', '500m', 0.5],
  ['-1.5', '-1500m', -1.5],
  ['100m', '100m', 0.1],
  ['1000m', '1', 1],
  ['1000', '1k', 1000],
  ['1500', '1500', 1500],
  ['1100000', '1100k', 1_100_000],
  ['1u', '1u', 1e-6],
  ['1n', '1n', 1e-9],
  ['0.1n', '1n', 1e-9],
  ['-0.1n', '-1n', -1e-9],
  ['0.1m', '100u', 1e-4],
  ['1E', '1E', 1e18],
  ['1000E', '1000E', 1e21],
  ['1e3', '1e3', 1000],
  ['12e5', '1200e3', 1_200_000],
  ['1e-4', '100e-6', 1e-4],
  ['1000e3', '1e6', 1e6],
  ['1e21', '1e21', 1e21],
  ['1Ki', '1Ki', 1024],
  ['1024', '1024', 1024],
  ['1024Ki', '1Mi', 1_048_576],
  ['1.5Gi', '1536Mi', 1.5 * 2 ** 30],
  ['0.5Ki', '512', 512],
  ['0.9765625Ki', '1k', 1000],
  ['1.2Ki', '1228800m', 1228.8],
  ['0.0001Ki', '102400u', 0.1024],
  ['128Mi', '128Mi', 128 * 2 ** 20],
  ['4Gi', '4Gi', 4 * 2 ** 30],
  ['-2048', '-2048', -2048],
  ['-2048Ki', '-2Mi', -2_097_152],
  ['100Ei', '9223372036854775807', 2 ** 63],
  // Go's fast path treats these as canonical and keeps them.
  ['1.500', '1.500', 1.5],
  ['+5', '+5', 5],
  ['5.', '5.', 5],
];

for (const [text, canonical, number] of good) {
  test(`${text} is ${canonical}`, () => {
    const quantity = parseQuantity(text);
    assert.equal(formatQuantity(quantity), canonical);
    assert.equal(quantityToNumber(quantity), number);
  });
}

const FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX = "unable to parse quantity's suffix";

const bad: [string, string][] = [
  ['', FORMAT],
  ['.', FORMAT],
  ['+', FORMAT],
  ['Ki', FORMAT],
  ['abc', FORMAT],
  ['1 Gi', FORMAT],
  ['1.2.3', FORMAT],
  ['1e3.5', FORMAT],
  ['--1', FORMAT],
  ['1\n', FORMAT],
  ['1'.repeat(300), FORMAT],
  ['1ki', SUFFIX],
  ['1i', SUFFIX],
  ['1e', SUFFIX],
  ['1K', SUFFIX],
  ['1e999999999', SUFFIX],
];

for (const [text, message] of bad) {
  test(`refuses ${JSON.stringify(text.slice(0, 20))}`, () => {
    assert.throws(() => parseQuantity(text), { name: 'QuantityError', message });
  });
}

const sums: [string, string, string][] = [
  ['1Gi', '1Gi', '2Gi'],
  ['1Gi', '1G', '2073741824'],
  ['512Mi', '512Mi', '1Gi'],
  ['500m', '500m', '1'],
  ['0', '1Ki', '1Ki'],
  ['1', '-1', '0'],
  ['1.500', '1.500', '3'],
];

for (const [a, b, want] of sums) {
  test(`${a} + ${b} is ${want}`, () => {
    assert.equal(formatQuantity(addQuantities(parseQuantity(a), parseQuantity(b))), want);
  });
}

/** The value of each suffix in nanos. */
const POWERS: Record<string, bigint> = {
  n: 1n,
  u: 10n ** 3n,
  m: 10n ** 6n,
  '': 10n ** 9n,
  k: 10n ** 12n,
  M: 10n ** 15n,
  e6: 10n ** 15n,
  'e-6': 10n ** 3n,
  Ki: 1024n * 10n ** 9n,
  Mi: 1024n ** 2n * 10n ** 9n,
  Gi: 1024n ** 3n * 10n ** 9n,
};
const MICRO = 10n ** 6n;
/** A random quantity below 2^63, the maximum of binary quantities. */
const amount = fc
  .tuple(fc.bigInt(-8n * 10n ** 9n, 8n * 10n ** 9n), fc.nat(999_999), fc.constantFrom(...Object.keys(POWERS)))
  .map(([whole, micros, suffix]) => {
    const sign = whole < 0n ? -1n : 1n;
    return {
      text: `${whole}.${String(micros).padStart(6, '0')}${suffix}`,
      /** The exact value in millionths of a nano. */
      exact: (whole * MICRO + sign * BigInt(micros)) * (POWERS[suffix] ?? 0n),
    };
  });

/** Rounds away from zero to whole nanos, as parsing does. */
const nanosOf = (exact: bigint) => (exact < 0n ? -((-exact + MICRO - 1n) / MICRO) : (exact + MICRO - 1n) / MICRO);

test('orders like exact rationals, up to the nano', () => {
  fc.assert(
    fc.property(amount, amount, (a, b) => {
      const difference = nanosOf(a.exact) - nanosOf(b.exact);
      const want = difference < 0n ? -1 : difference > 0n ? 1 : 0;
      assert.equal(compareQuantities(parseQuantity(a.text), parseQuantity(b.text)), want);
    }),
    { numRuns: 500 },
  );
});

test('the canonical text has the same value and is its own canonical text', () => {
  fc.assert(
    fc.property(amount, ({ text }) => {
      const { nanos, format } = parseQuantity(text);
      const canonical = formatQuantity({ nanos, format });
      const again = parseQuantity(canonical);
      assert.equal(again.nanos, nanos);
      assert.equal(formatQuantity({ nanos: again.nanos, format: again.format }), canonical);
      assert.doesNotMatch(canonical, /\./);
    }),
    { numRuns: 500 },
  );
});
