/**
 * All kinds that are served now: the built-in ones, and custom ones while their definition is established.
 * Whoever caches something about the kinds compares `generation`.
 */
import { compileSchema, type CompiledSchema } from '#engine/registry/structural/compile.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Schema } from '#kube/schema.ts';
import { metadataSchema } from '#engine/registry/metadata.ts';

export interface Served {
  readonly resource: Resource;
  readonly schema: CompiledSchema;
  /** With metadata: what strategic merge patches walk. */
  readonly patchSchema: Schema;
}

export class Registry {
  readonly #builtIn: readonly Served[];
  #custom: readonly Served[] = [];
  #byPath = new Map<string, Served>();
  #resources: readonly Resource[] = [];
  #generation = 0;

  constructor(builtIn: readonly Resource[]) {
    this.#builtIn = builtIn.map(serve);
    this.#index();
  }

  get generation(): number {
    return this.#generation;
  }

  get resources(): readonly Resource[] {
    return this.#resources;
  }

  find(group: string, version: string, plural: string): Served | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Any served version of a stored collection: for walking what exists, whatever its version. */
  collections(): Resource[] {
    const seen = new Map<string, Resource>();
    for (const resource of this.#resources) {
      if (!seen.has(resource.collection) || resource.version === resource.storageVersion) {
        seen.set(resource.collection, resource);
      }
    }
    return [...seen.values()];
  }

  /** Replaces the custom kinds; those that did not change keep their compiled schema. */
  setCustom(resources: readonly Resource[]): void {
    const known = new Map(this.#custom.map((served) => [served.resource, served]));
    this.#custom = resources.map((resource) => known.get(resource) ?? serve(resource));
    this.#index();
  }

  #index(): void {
    this.#generation++;
    this.#byPath = new Map();
    const all = [...this.#builtIn, ...this.#custom];
    for (const served of all) {
      const { group, version, plural } = served.resource;
      this.#byPath.set(`${group}/${version}/${plural}`, served);
    }
    this.#resources = all.map((served) => served.resource);
  }
}

function serve(resource: Resource): Served {
  let compiled: CompiledSchema | undefined;
  let patchSchema: Schema | undefined;
  return {
    resource,
    // Most kinds are never written in a short run; compiling on first use keeps the start fast.
    get schema() {
      return (compiled ??= compileSchema(resource.schema, { builtIn: resource.builtIn }));
    },
    get patchSchema() {
      const properties = { ...resource.schema.properties, metadata: metadataSchema };
      return (patchSchema ??= { ...resource.schema, properties });
    },
  };
}
