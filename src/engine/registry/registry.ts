/**
 * All kinds that are currently served: the built-in ones, and custom ones while their definition is established.
 * Callers that cache derived values compare `generation`.
 */
import { compileSchema, type CompiledSchema } from '#engine/registry/structural/compile.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { compileValidator } from '#engine/registry/structural/validate.ts';
import { str } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';
import { metadataSchema } from '#engine/registry/kinds/meta/object-meta.ts';

export interface Served {
  readonly resource: Resource;
  /** For built-in kinds, it also decodes the metadata, but does not validate them. */
  readonly schema: CompiledSchema;
  /** The schema including metadata, for strategic merge patches. */
  readonly patchSchema: Schema;
  /** Returns the same kind in another served version. */
  sibling(version: string): Served | undefined;
}

export class Registry {
  readonly #builtIn: readonly Served[];
  #custom: readonly Served[] = [];
  #byPath = new Map<string, Served>();
  #resources: readonly Resource[] = [];
  #generation = 0;

  constructor(builtIn: readonly Resource[]) {
    this.#builtIn = builtIn.map((resource) => this.#serve(resource));
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

  /** Reports whether a collection belongs to a built-in kind. */
  isBuiltIn(collection: string): boolean {
    return this.#builtIn.some(({ resource }) => resource.collection === collection);
  }

  /** Returns one served version for each stored collection, to walk over all objects. */
  collections(): Resource[] {
    const seen = new Map<string, Resource>();
    for (const resource of this.#resources) {
      if (!seen.has(resource.collection) || resource.version === resource.storageVersion) {
        seen.set(resource.collection, resource);
      }
    }
    return [...seen.values()];
  }

  /** Replaces the custom kinds. Unchanged kinds keep their compiled schema. */
  setCustom(resources: readonly Resource[]): void {
    const known = new Map(this.#custom.map((served) => [served.resource, served]));
    this.#custom = resources.map((resource) => known.get(resource) ?? this.#serve(resource));
    this.#index();
  }

  #serve(resource: Resource): Served {
    const { group, plural } = resource;
    return serve(resource, (version) => this.find(group, version, plural));
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

function serve(resource: Resource, sibling: Served['sibling']): Served {
  const { schema, builtIn, stored, version } = resource;
  let compiled: CompiledSchema | undefined;
  let patchSchema: Schema | undefined;
  return {
    resource,
    sibling,
    // Most kinds are not written in a short run, so compiling on first use keeps the start fast.
    get schema() {
      if (compiled !== undefined) return compiled;
      if (builtIn) return (compiled = compileBuiltIn(schema, this.patchSchema));
      return (compiled = stored?.schemaOf(version) ?? compileSchema(schema));
    },
    get patchSchema() {
      return (patchSchema ??= wholeObject(schema));
    },
  };
}

function wholeObject(schema: Schema): Schema {
  const properties = { apiVersion: str(), kind: str(), ...schema.properties, metadata: metadataSchema };
  return { ...schema, properties };
}

/** Compiles schema and metadata in one: Go decodes metadata like any other field and reports its errors in order. */
function compileBuiltIn(schema: Schema, whole: Schema): CompiledSchema {
  const compiled = compileSchema(whole, { root: false, builtIn: true });
  return { ...compiled, ...compileValidator(schema, { uniqueLists: false }) };
}
