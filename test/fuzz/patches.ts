/** Patches of every type for a given object; most of them can be applied. */
import { mutated } from '#test/fuzz/from-schema.ts';
import { ODD_KEYS, oddValue, put } from '#test/fuzz/odd-values.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';

export const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
] as const;

export type PatchType = (typeof PATCH_TYPES)[number];

/** Returns a patch; `make` returns another value of the object's kind. */
export function patchOf(type: PatchType, current: unknown, random: SeededRandom, make: () => unknown): unknown {
  const replacement = () => (random.chance(0.5) ? oddValue(random, 2) : anyPart(make(), random));
  switch (type) {
    case 'application/json-patch+json':
      return Array.from({ length: random.between(0, 5) }, () => operation(current, random, replacement));
    case 'application/merge-patch+json':
      return partial(current, random, replacement, false);
    case 'application/strategic-merge-patch+json':
      return partial(current, random, replacement, true);
    case 'application/apply-patch+yaml':
      return configuration(current, random, replacement);
  }
}

function anyPart(value: unknown, random: SeededRandom): unknown {
  if (typeof value !== 'object' || value === null || random.chance(0.4)) return value;
  const parts: unknown[] = Object.values(value);
  return parts.length === 0 ? value : anyPart(random.pick(parts), random);
}

const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'];
const ODD_POINTERS = ['', '/', '/-', '//', '/~', '/~2', '/metadata/__proto__/x', '/constructor/prototype', 'metadata'];

function operation(current: unknown, random: SeededRandom, replacement: () => unknown): unknown {
  if (random.chance(0.03)) return oddValue(random);
  const made: Record<string, unknown> = { op: random.chance(0.97) ? random.pick(OPERATIONS) : oddValue(random) };
  if (!random.chance(0.03)) made['path'] = pointer(current, random);
  if (random.chance(0.4)) made['from'] = pointer(current, random);
  if (random.chance(0.8)) made['value'] = replacement();
  return made;
}

function pointer(current: unknown, random: SeededRandom): unknown {
  if (random.chance(0.05)) return random.pick(ODD_POINTERS);
  if (random.chance(0.02)) return oddValue(random);
  let path = '';
  let at = current;
  while (typeof at === 'object' && at !== null && !random.chance(0.25)) {
    const keys = Object.keys(at);
    if (Array.isArray(at) && random.chance(0.3)) {
      keys.push('-', '-1', '01', String(at.length), '99999999999', '1e3', '4294967296');
    } else if (random.chance(0.15)) {
      keys.push(random.pick(ODD_KEYS));
    }
    if (keys.length === 0) break;
    const key = random.pick(keys);
    path += `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    at = Object.hasOwn(at, key) ? (at as Record<string, unknown>)[key] : undefined;
  }
  return path;
}

const DIRECTIVES = ['replace', 'delete', 'merge', 'odd', ''];

/** Returns some of the fields, each removed, kept, changed or patched recursively. */
function partial(current: unknown, random: SeededRandom, replacement: () => unknown, strategic: boolean): unknown {
  if (random.chance(0.1)) return null;
  if (random.chance(0.2)) return replacement();
  if (Array.isArray(current)) {
    const items: unknown[] = current.map((item) => (strategic ? partial(item, random, replacement, true) : item));
    if (strategic && random.chance(0.2)) items.push({ $patch: random.pick(DIRECTIVES) });
    if (random.chance(0.2)) items.push(replacement());
    return items;
  }
  if (typeof current !== 'object' || current === null) return current;
  const made: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(current)) {
    if (random.chance(0.5)) put(made, key, partial(value, random, replacement, strategic));
    if (strategic && Array.isArray(value) && random.chance(0.3)) put(made, ...listDirective(key, value, random));
  }
  if (strategic && random.chance(0.1)) made['$patch'] = random.chance(0.8) ? random.pick(DIRECTIVES) : oddValue(random);
  if (strategic && random.chance(0.1))
    made['$retainKeys'] = random.chance(0.8) ? Object.keys(current) : oddValue(random);
  if (random.chance(0.1)) put(made, random.pick(ODD_KEYS), replacement());
  return made;
}

function listDirective(key: string, value: readonly unknown[], random: SeededRandom): [string, unknown] {
  const name = random.pick(['$setElementOrder', '$deleteFromPrimitiveList', '$setElementOrder/']);
  const items = random.chance(0.2) ? oddValue(random) : random.chance(0.3) ? value.toReversed() : value;
  return [`${name}/${key}`, items];
}

const ODD_OWNERS: readonly unknown[] = [
  [],
  [{}],
  null,
  [{ manager: 'm', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:data': {} } }],
  [{ manager: 'm', operation: 'Update', apiVersion: 'x/y/z', fieldsType: 'FieldsV9', fieldsV1: { a: 1 } }],
  [{ manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'k:{': { '.': [] } } }],
];

/** Returns what an applier would send: mostly without the fields that only the server writes. */
function configuration(current: unknown, random: SeededRandom, replacement: () => unknown): unknown {
  const made = mutated(current, random, replacement);
  if (typeof made !== 'object' || made === null || Array.isArray(made)) return made;
  const { metadata, ...rest } = made as Record<string, unknown>;
  if (typeof metadata !== 'object' || metadata === null || random.chance(0.05)) return made;
  const { managedFields: _, ...kept } = metadata as Record<string, unknown>;
  if (random.chance(0.7)) delete kept['resourceVersion'];
  if (random.chance(0.05)) kept['managedFields'] = random.pick(ODD_OWNERS);
  return { ...rest, metadata: kept };
}
