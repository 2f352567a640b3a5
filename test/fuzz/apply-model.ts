/**
 * A model of server-side apply: a table of leaves, each with one value and its owners. Paths are those of FieldsV1,
 * joined by slashes.
 */
import type { SeededRandom } from '#test/support/seeded-random.ts';
import type { Loose } from '#test/support/test-api.ts';

const text = { type: 'string' };

/** A kind with a field for each merge strategy and without defaults, so that objects contain only what was sent. */
export const APPLIED_CRD: Loose = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'applieds.fuzz.local' },
  spec: {
    group: 'fuzz.local',
    scope: 'Namespaced',
    names: { plural: 'applieds', singular: 'applied', kind: 'Applied', listKind: 'AppliedList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  note: text,
                  deep: { type: 'object', properties: { x: text, y: { type: 'integer' } } },
                  labels: { type: 'object', additionalProperties: text },
                  selector: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text },
                  tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
                  plain: { type: 'array', items: text },
                  parts: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: { type: 'object', required: ['name'], properties: { name: text, a: text, b: text } },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** Makes a spec with few names and values, so that managers often have conflicts. */
export function randomSpec(random: SeededRandom): Loose {
  const value = () => random.pick(['1', '2']);
  const some = (names: readonly string[]) => names.filter(() => random.chance(0.4));
  const map = (names: readonly string[]) => Object.fromEntries(some(names).map((name) => [name, value()]));
  const spec: Loose = {};
  if (random.chance(0.3)) spec.note = value();
  if (random.chance(0.3)) spec.deep = { x: value(), ...(random.chance(0.5) ? { y: random.between(1, 2) } : {}) };
  if (random.chance(0.6)) spec.labels = map(['a', 'b', 'c']);
  if (random.chance(0.3)) spec.selector = { s: value() };
  if (random.chance(0.5)) spec.tags = some(['x', 'y', 'z']);
  if (random.chance(0.3)) spec.plain = [value(), value()];
  if (random.chance(0.6)) spec.parts = some(['p', 'q']).map((name) => ({ name, ...map(['a', 'b']) }));
  // Empty maps and lists have owners of their own, which the model of leaves does not have.
  for (const [name, part] of Object.entries(spec)) if (Object.keys(part as object).length === 0) delete spec[name];
  return Object.keys(spec).length === 0 ? { note: value() } : spec;
}

export type Leaves = ReadonlyMap<string, string>;

/** Returns the leaves of a spec with their values. */
export function leavesOf(spec: Loose): Map<string, string> {
  const leaves = new Map<string, string>();
  const put = (path: string, value: unknown) => void leaves.set(`f:spec/${path}`, JSON.stringify(value));
  for (const name of ['note', 'selector', 'plain']) if (spec?.[name] !== undefined) put(`f:${name}`, spec[name]);
  for (const name of ['deep', 'labels']) {
    for (const [key, value] of Object.entries(spec?.[name] ?? {})) put(`f:${name}/f:${key}`, value);
  }
  for (const tag of spec?.tags ?? []) put(`f:tags/v:${JSON.stringify(tag)}`, tag);
  for (const part of spec?.parts ?? []) {
    const item = `f:parts/k:${JSON.stringify({ name: part.name })}`;
    for (const [key, value] of Object.entries(part)) put(`${item}/f:${key}`, value);
  }
  return leaves;
}

/** Returns the leaves that an entry of managedFields owns. */
export function ownedLeaves(fieldsV1: Loose, path = ''): string[] {
  const children = Object.entries(fieldsV1 ?? {}).filter(([name]) => name !== '.');
  if (children.length === 0) return path === '' ? [] : [path];
  return children.flatMap(([name, child]) => ownedLeaves(child, path === '' ? name : `${path}/${name}`));
}

export class ApplyModel {
  readonly values = new Map<string, string>();
  readonly #owners = new Map<string, Set<string>>();

  /** Applies the leaves; returns false and changes nothing if there is a conflict. */
  apply(manager: string, config: Leaves, force: boolean): boolean {
    const taken = [...config].filter(([leaf, value]) => this.#conflicts(leaf, value, manager));
    if (taken.length > 0 && !force) return false;
    for (const [leaf] of taken) this.#owners.get(leaf)!.clear();
    for (const leaf of this.ownedBy(manager)) if (!config.has(leaf)) this.#disown(leaf, manager);
    for (const [leaf, value] of config) this.#own(leaf, value, manager);
    return true;
  }

  /** Updates a leaf: the manager becomes its only owner if it changes the value; undefined removes the leaf. */
  set(manager: string, leaf: string, value: string | undefined): void {
    if (this.values.get(leaf) === value) return;
    this.#owners.delete(leaf);
    this.values.delete(leaf);
    if (value !== undefined) this.#own(leaf, value, manager);
  }

  ownedBy(manager: string): string[] {
    return [...this.#owners].filter(([, owners]) => owners.has(manager)).map(([leaf]) => leaf);
  }

  #conflicts(leaf: string, value: string, manager: string): boolean {
    if (!this.values.has(leaf) || this.values.get(leaf) === value) return false;
    return [...this.#owners.get(leaf)!].some((owner) => owner !== manager);
  }

  #own(leaf: string, value: string, manager: string): void {
    this.values.set(leaf, value);
    const owners = this.#owners.get(leaf) ?? new Set();
    this.#owners.set(leaf, owners.add(manager));
  }

  #disown(leaf: string, manager: string): void {
    const owners = this.#owners.get(leaf)!;
    owners.delete(manager);
    if (owners.size > 0) return;
    this.#owners.delete(leaf);
    this.values.delete(leaf);
  }
}
