/**
 * What server-side apply has to do, as a table of leaves: each has one value and those who own it. Paths are written as
 * FieldsV1 writes them, joined by a slash.
 */
import type { SeededRandom } from '#test/support/seeded-random.ts';
import type { Loose } from '#test/support/test-api.ts';

const text = { type: 'string' };

/** Has a field of each way to merge, and no defaults: what nobody sent is not there. */
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

/** Few names and values, so that managers meet often. */
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
  // Empty maps and lists are owned as such, which says nothing of the leaves.
  for (const [name, part] of Object.entries(spec)) if (Object.keys(part as object).length === 0) delete spec[name];
  return Object.keys(spec).length === 0 ? { note: value() } : spec;
}

export type Leaves = ReadonlyMap<string, string>;

/** The leaves of a spec with their values. */
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

/** The leaves that an entry of managedFields owns. */
export function ownedLeaves(fieldsV1: Loose, path = ''): string[] {
  const children = Object.entries(fieldsV1 ?? {}).filter(([name]) => name !== '.');
  if (children.length === 0) return path === '' ? [] : [path];
  return children.flatMap(([name, child]) => ownedLeaves(child, path === '' ? name : `${path}/${name}`));
}

export class ApplyModel {
  readonly values = new Map<string, string>();
  readonly #owners = new Map<string, Set<string>>();

  /** False = a conflict, and nothing has changed. */
  apply(manager: string, config: Leaves, force: boolean): boolean {
    const taken = [...config].filter(([leaf, value]) => this.#isAnothers(leaf, value, manager));
    if (taken.length > 0 && !force) return false;
    for (const [leaf] of taken) this.#owners.get(leaf)!.clear();
    for (const leaf of this.ownedBy(manager)) if (!config.has(leaf)) this.#letGo(leaf, manager);
    for (const [leaf, value] of config) this.#own(leaf, value, manager);
    return true;
  }

  /** An update: who changes a value owns it alone; undefined takes it away from everybody. */
  set(manager: string, leaf: string, value: string | undefined): void {
    if (this.values.get(leaf) === value) return;
    this.#owners.delete(leaf);
    this.values.delete(leaf);
    if (value !== undefined) this.#own(leaf, value, manager);
  }

  ownedBy(manager: string): string[] {
    return [...this.#owners].filter(([, owners]) => owners.has(manager)).map(([leaf]) => leaf);
  }

  #isAnothers(leaf: string, value: string, manager: string): boolean {
    if (!this.values.has(leaf) || this.values.get(leaf) === value) return false;
    return [...this.#owners.get(leaf)!].some((owner) => owner !== manager);
  }

  #own(leaf: string, value: string, manager: string): void {
    this.values.set(leaf, value);
    const owners = this.#owners.get(leaf) ?? new Set();
    this.#owners.set(leaf, owners.add(manager));
  }

  #letGo(leaf: string, manager: string): void {
    const owners = this.#owners.get(leaf)!;
    owners.delete(manager);
    if (owners.size > 0) return;
    this.#owners.delete(leaf);
    this.values.delete(leaf);
  }
}
