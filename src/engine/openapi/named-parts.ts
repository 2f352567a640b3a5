/**
 * Takes the schemas of built-in kinds apart into the named types that Kubernetes has for their parts, and adds the words
 * of parts/. A reference holds the bare name of a model; v2 and v3 write it each in its own way.
 */
import { compareText } from '#engine/discovery/group-order.ts';
import { INT_OR_STRING, OBJECT_META, QUANTITY, TIME } from '#engine/openapi/model-names.ts';
import { modelOfType, partOf } from '#engine/openapi/parts/all-parts.ts';
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { metadataSchema } from '#engine/registry/metadata.ts';
import { isRecord } from '#kube/meta.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const WORDS_OF_SCALARS: Readonly<Record<string, string>> = {
  [QUANTITY]: 'An amount with a unit: 500m, 2, 1Gi.',
  [INT_OR_STRING]: 'A number or a text.',
  [TIME]: 'A time as RFC 3339 writes it.',
};

/** How a value is made and merged belongs to the field that has it, not to its type. */
const OF_THE_FIELD = ['default', 'x-kubernetes-patch-strategy', 'x-kubernetes-patch-merge-key'] as const;

export class NamedParts {
  /** The parts of all kinds so far. */
  readonly definitions = new Map<string, DocumentSchema>();
  readonly #texts = new Map<string, string>();

  /** Objects inside objects have metadata, too: every document needs it. */
  constructor() {
    this.#define(OBJECT_META, this.ofKind(metadataSchema, OBJECT_META));
  }

  /** The schema of a kind, whose own name is this model. */
  ofKind(schema: Schema, model: string): DocumentSchema {
    const part = partOf(model);
    const words = part?.[''];
    const out: DocumentSchema = { ...schema };
    if (typeof words === 'string') out.description ??= words;
    if (schema.properties === undefined) return out;
    out.properties = Object.create(null) as Record<string, DocumentSchema>;
    for (const [name, property] of Object.entries(schema.properties)) {
      const said = part !== undefined && Object.hasOwn(part, name) ? part[name]! : [undefined, undefined];
      const [text, type] = typeof said === 'string' ? [said, undefined] : said;
      out.properties[name] = this.#field(property, text, type === undefined ? undefined : modelOfType(type, model));
    }
    return out;
  }

  #field(schema: Schema, words: string | undefined, model: string | undefined): DocumentSchema {
    const scalar = scalarModel(schema);
    if (scalar !== undefined) return this.#reference(schema, words, scalar);
    if (schema.properties !== undefined) {
      return model === undefined ? described(this.ofKind(schema, ''), words) : this.#reference(schema, words, model);
    }
    const out = described(schema, words);
    if (schema.items !== undefined) return { ...out, items: this.#field(schema.items, undefined, model) };
    const { additionalProperties: values } = schema;
    return isRecord(values) ? { ...out, additionalProperties: this.#field(values, undefined, model) } : out;
  }

  /** Where two schemas go by one name, only the first can have it: the other stands where it is used. */
  #reference(schema: Schema, words: string | undefined, model: string): DocumentSchema {
    const { description = words, ...rest } = schema;
    const said: DocumentSchema = description === undefined ? {} : { description };
    for (const key of OF_THE_FIELD) {
      if (rest[key] !== undefined) Object.assign(said, { [key]: rest[key] });
      delete rest[key];
    }
    const body = this.ofKind(rest, model);
    const about = WORDS_OF_SCALARS[model];
    if (about !== undefined) body.description = about;
    if (model === OBJECT_META || this.#define(model, body)) return { ...said, $ref: model };
    const isAtomicElsewhere = this.#define(model, { ...body, 'x-kubernetes-map-type': 'atomic' });
    return isAtomicElsewhere ? { ...said, 'x-kubernetes-map-type': 'granular', $ref: model } : { ...body, ...said };
  }

  /** Whether this is what goes by that name. */
  #define(model: string, body: DocumentSchema): boolean {
    const text = JSON.stringify(Object.entries(body).sort(([a], [b]) => compareText(a, b)));
    const known = this.#texts.get(model);
    if (known !== undefined) return known === text;
    this.#texts.set(model, text);
    this.definitions.set(model, body);
    return true;
  }
}

function scalarModel(schema: Schema): string | undefined {
  if (isQuantity(schema)) return QUANTITY;
  if (schema['x-kubernetes-int-or-string'] === true) return INT_OR_STRING;
  return schema.format === 'date-time' ? TIME : undefined;
}

function described(schema: DocumentSchema, words: string | undefined): DocumentSchema {
  return words === undefined || schema.description !== undefined ? schema : { ...schema, description: words };
}
