/** Values that programs handle wrongly: edge cases of JSON, YAML and Kubernetes. */
import type { SeededRandom } from '#test/support/seeded-random.ts';

const LONG = 'a'.repeat(300);

export const ODD_TEXTS: readonly string[] = [
  '',
  ' ',
  '0',
  '-1',
  'null',
  'true',
  '~',
  '\u0000',
  '\u001b[31m',
  '\n\r\t',
  '\ud800',
  '\udfff\ud800',
  '\ufeff',
  '\u2028',
  'é\u0301',
  '💥',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'prototype',
  '..',
  '.',
  '/',
  'a/b',
  '%2e%2e',
  '%zz',
  'a.b.c',
  'A_B',
  'UPPER',
  '-',
  '-a',
  'a-',
  '$(HOME)',
  '${x}',
  '*',
  '(?<',
  '((a+)+)+$',
  '1e400',
  '0x10',
  '1Gi',
  '-1Ki',
  '1e99999999',
  '9'.repeat(400),
  '1.5m',
  'NaN',
  'Infinity',
  '2026-01-01T00:00:00Z',
  '0000-00-00T00:00:00Z',
  '+275760-09-13T00:00:00.001Z',
  '2026-02-30T25:61:61Z',
  'not a date',
  '10s',
  '-1h',
  '999999999999999h',
  'https://[::1]:99999/',
  'http://user:pass@host',
  '://',
  '::ffff:1.2.3.4',
  '256.1.1.1',
  '1.2.3.4/33',
  'YQ==',
  '====',
  'self.x',
  'object.metadata.name == "a"',
  '1 / 0',
  '[1,2].map(x, x)',
  'default',
  'kube-system',
  'v1',
  'Pod',
  'metadata.name',
  '{"a":1}',
  '{.spec.x}',
  '.spec.x',
  '$patch',
  'IfNotPresent',
  LONG,
  `${LONG}.${LONG}`,
];

export const ODD_NUMBERS: readonly number[] = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.1,
  1e-320,
  1e308,
  -1e308,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  2 ** 53,
  2 ** 53 + 2,
  2 ** 63,
  -(2 ** 63),
  2 ** 64,
  1e21,
  65536,
];

export const ODD_KEYS: readonly string[] = [
  ...ODD_TEXTS,
  'metadata',
  'name',
  'namespace',
  'spec',
  'status',
  'items',
  'apiVersion',
  'kind',
  'finalizers',
  'ownerReferences',
  'managedFields',
  '$patch',
  '$retainKeys',
  '$deleteFromPrimitiveList/finalizers',
  '$setElementOrder/containers',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
];

/** Sets an own property, even if the key is `__proto__`, as JSON.parse does. */
export function put(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

export function oddScalar(random: SeededRandom): unknown {
  switch (random.between(0, 5)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.pick(ODD_NUMBERS);
    case 3:
      return random.between(-5, 70_000);
    default:
      return random.pick(ODD_TEXTS);
  }
}

/** Returns a random tree, mostly a small one. */
export function oddValue(random: SeededRandom, depth = 0): unknown {
  const kind = random.between(0, depth > 4 ? 5 : 9);
  if (kind <= 5) return oddScalar(random);
  const size = random.between(0, 3);
  if (kind <= 7) return Array.from({ length: size }, () => oddValue(random, depth + 1));
  const made: Record<string, unknown> = {};
  for (let field = 0; field < size; field++) put(made, random.pick(ODD_KEYS), oddValue(random, depth + 1));
  return made;
}

/** Returns a tree that is very deep, wide or long. */
export function hugeValue(random: SeededRandom): unknown {
  const size = random.pick([300, 5000, 50_000]);
  switch (random.between(0, 4)) {
    case 0:
      return nested(random.pick([100, 200, 250]), (inner) => [inner]);
    case 1:
      return nested(random.pick([100, 200, 250]), (inner) => ({ a: inner }));
    case 2:
      return 'x'.repeat(size * 20);
    case 3:
      return Array.from({ length: size }, (_, index) => (index % 2 === 0 ? `item-${index}` : index));
    default:
      return Object.fromEntries(Array.from({ length: size }, (_, index) => [`key-${index}`, String(index)]));
  }
}

function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level++) value = wrap(value);
  return value;
}
