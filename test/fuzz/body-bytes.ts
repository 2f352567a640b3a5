/** Values as bytes in JSON, YAML and protobuf: mostly well-formed, sometimes with what parsers handle wrongly. */
import { stringify } from 'yaml';
import { kubectlBodies } from '#engine/protobuf/testing/kubectl-bodies.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';

export function jsonBytes(value: unknown, random: SeededRandom): Buffer {
  const bytes = Buffer.from(JSON.stringify(value) ?? 'null');
  return random.chance(0.12) ? damageSome(random.pick(JSON_ODDITIES)(bytes.toString(), random), random) : bytes;
}

export function yamlBytes(value: unknown, random: SeededRandom): Buffer {
  const text = stringify(value, { aliasDuplicateObjects: random.chance(0.5) });
  return random.chance(0.3) ? damageSome(random.pick(YAML_ODDITIES)(text, random), random) : Buffer.from(text);
}

const RECORDED = Object.values(kubectlBodies).map(({ base64 }) => Buffer.from(base64, 'base64'));

export function protobufBytes(random: SeededRandom): Buffer {
  const bytes = Buffer.from(random.pick(RECORDED));
  for (let edits = random.between(0, 3); edits > 0; edits--) {
    bytes[random.between(random.chance(0.9) ? 4 : 0, bytes.length - 1)] = random.between(0, 255);
  }
  return random.chance(0.1) ? bytes.subarray(0, random.between(0, bytes.length)) : bytes;
}

export function noise(random: SeededRandom): Buffer {
  return Buffer.from(Array.from({ length: random.between(0, 200) }, () => random.between(0, 255)));
}

type Oddity = (text: string, random: SeededRandom) => string;

/** Inserts a field after the first `{`. */
function insertField(text: string, field: string): string {
  return text.replace('{', () => `{${field}`);
}

const JSON_ODDITIES: readonly Oddity[] = [
  (text) => insertField(text, '"kind":"Twice",'),
  (text) => insertField(text, '"metadata":{"name":"first"},"metadata":null,'),
  (text) => insertField(text, '"__proto__":{"polluted":true},"\\u005f_proto__":{"polluted":true},'),
  (text) => insertField(text, '"constructor":{"prototype":{"polluted":true}},'),
  (text) => insertField(text, '"x":123456789012345678901234567890.5e9999,'),
  (text) => insertField(text, '"x":-0,"y":1E+2,"z":1e-999,'),
  (text) => insertField(text, '"\\ud800":"\\udc00\\u0000",'),
  (text) => insertField(text, '"":"","":[],'),
  (text) => insertField(text, '"x":NaN,'),
  (text) => text.replace(/:(\d+)/, ':9007199254740993'),
  (text) => text.replace(/:"[^"]*"/, ':1e400'),
  (text) => text.replace(/"[^"]*"/, '"\\ud83d"'),
  (text) => `\ufeff${text}`,
  (text) => `${text}${text}`,
  (text) => `${text} trailing`,
  (text) => text.slice(0, text.length / 2),
  (_, random) => '['.repeat(random.pick([255, 256, 257, 20_000])),
  (_, random) => '{"a":'.repeat(random.pick([255, 256, 257, 5000])) + '1' + '}'.repeat(5000),
  (text, random) => insertField(text, `"deep":${'['.repeat(250)}${']'.repeat(random.pick([250, 249]))},`),
  (text) => insertField(text, `"metadata":{"annotations":{"big":"${'y'.repeat(260_000)}"}},`),
  () => '',
  () => 'null',
  () => '"text"',
  () => '[]',
  () => '{}',
];

/** The "billion laughs": each list has nine aliases of the previous one. */
const LAUGHS = 'abcdefghi'
  .split('')
  .map((name, index, names) => {
    const item = index === 0 ? 'x' : `*${names[index - 1]}`;
    return `${name}: &${name} [${Array.from({ length: 9 }, () => item).join(',')}]`;
  })
  .join('\n');

const YAML_ODDITIES: readonly Oddity[] = [
  (text) => `${text}\n${LAUGHS}\n`,
  (text) => `${text}x: &x\n  y: *x\n`,
  (text) => `${text}x: *nowhere\n`,
  (text) => `${text}base: &base {a: 1}\nderived:\n  <<: *base\n  <<: [*base, *base]\n`,
  (text) => `${text}__proto__:\n  polluted: true\n`,
  (text) => `${text}? [complex, key]\n: value\n? {a: b}\n: value\n`,
  (text) => `${text}n: .nan\ni: -.inf\no: 0o17\nx: 0xff\nb: 0b11\nd: 2026-01-01\ns: 1_000\n`,
  (text) =>
    `${text}t: !!binary YQ==\nu: !!set {a, b}\nv: !!js/function 'x'\nw: !<tag:x> y\nz: !!timestamp 2026-13-45\n`,
  (text) => `${text}o: !!omap [a: 1, a: 2]\np: !!pairs [a: 1]\nf: !!float x\ni: !!int 99999999999999999999999\n`,
  (text) => `---\n${text}---\n${text}...\n`,
  (text) => `%YAML 9.9\n%TAG ! tag:x,2000:\n---\n${text}`,
  (text) => text.replaceAll('  ', '\t'),
  (text) => `${text}${text}`,
  (text) => `${text}null: 1\ntrue: 2\n~: 3\n1: 4\n1.5: 5\n? \n: 6\n`,
  (text) => `${text}long: |2-\n    indented\n  \u0000\u0085\u2028\n`,
  (_, random) => '['.repeat(random.pick([250, 500, 3000])),
  (_, random) => '{a: '.repeat(random.pick([100, 500, 3000])),
  (_, random) => '- '.repeat(random.pick([100, 500, 3000])),
  (_, random) => '? '.repeat(random.pick([100, 500, 3000])),
  (_, random) => '&a '.repeat(random.pick([1, 500])),
  (text) => `${text}${'#'.repeat(10_000)}\n${'k: v\n'.repeat(5)}`,
  (text, random) => `${text}${'"'.repeat(random.between(1, 3))}\n${"'".repeat(random.between(1, 3))}`,
  (text) => `${text}many:\n${Array.from({ length: 3000 }, (_, index) => `  k${index}: ${index}\n`).join('')}`,
  (text) => `${text}same: {${Array.from({ length: 2000 }, () => 'a: 1').join(', ')}}\n`,
  () => '',
  () => '~',
  () => '- a\n- b\n',
];

/** Changes some bytes at random, in some of the cases. */
function damageSome(text: string, random: SeededRandom): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length === 0 || !random.chance(0.3)) return bytes;
  for (let edits = random.between(1, 4); edits > 0; edits--) {
    bytes[random.between(0, bytes.length - 1)] = random.between(0, 255);
  }
  return bytes;
}
