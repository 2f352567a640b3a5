/**
 * Splits the schemas of built-in kinds into the named types that Kubernetes defines for their nested objects
 * (registry/kinds/api-type.ts). A reference holds the bare model name; v2 and v3 format it differently.
 */
import { compareText } from '#lib/text/compare-text.ts';
import { INT_OR_STRING, modelOfType, OBJECT_META, QUANTITY_MODEL, TIME } from '#engine/openapi/model-names.ts';
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { apiTypeOf } from '#engine/registry/kinds/api-type.ts';
import { metadataSchema } from '#engine/registry/kinds/meta/object-meta.ts';
import { isRecord } from '#kube/meta.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const SCALAR_DESCRIPTIONS: Readonly<Record<string, string>> = {
  [QUANTITY_MODEL]: 'A number with an optional unit suffix, such as 500m, 2 or 1Gi.',
  [INT_OR_STRING]: 'An integer or a string.',
  [TIME]: 'A timestamp in RFC 3339 format.',
};

/** Keywords that belong to a field rather than to its type. */
const FIELD_KEYWORDS = ['default', 'x-kubernetes-patch-strategy', 'x-kubernetes-patch-merge-key'] as const;

export class NamedTypes {
  /** The definitions of the nested types of all kinds that were added so far. */
  readonly definitions = new Map<string, DocumentSchema>();
  readonly #texts = new Map<string, string>();

  /** Defines ObjectMeta, which every document needs because nested objects have metadata. */
  constructor() {
    this.#define(OBJECT_META, this.ofKind(metadataSchema));
  }

  /** Returns the schema of a kind with its nested types replaced by references. */
  ofKind(schema: Schema): DocumentSchema {
    const description = apiTypeOf(schema)?.description;
    const out: DocumentSchema = { ...schema };
    if (description !== undefined) out.description ??= description;
    if (schema.properties === undefined) return out;
    out.properties = Object.create(null) as Record<string, DocumentSchema>;
    for (const [name, property] of Object.entries(schema.properties)) out.properties[name] = this.#field(property);
    return out;
  }

  #field(schema: Schema): DocumentSchema {
    const scalar = scalarModel(schema);
    if (scalar !== undefined) return this.#reference(schema, scalar);
    const type = apiTypeOf(schema);
    if (type !== undefined) return this.#reference(schema, modelOfType(type.name));
    if (schema.properties !== undefined) return this.ofKind(schema);
    if (schema.items !== undefined) return { ...schema, items: this.#field(schema.items) };
    const { additionalProperties: values } = schema;
    return isRecord(values) ? { ...schema, additionalProperties: this.#field(values) } : schema;
  }

  /**
   * Returns a reference to a model. Two different schemas can have the same model name: the first one defines it, the
   * other is inlined.
   */
  #reference(schema: Schema, model: string): DocumentSchema {
    const { description, ...rest } = schema;
    const fieldDoc: DocumentSchema = description === undefined ? {} : { description };
    for (const key of FIELD_KEYWORDS) {
      if (rest[key] !== undefined) Object.assign(fieldDoc, { [key]: rest[key] });
      delete rest[key];
    }
    const body = this.ofKind(rest);
    const about = SCALAR_DESCRIPTIONS[model];
    if (about !== undefined) body.description = about;
    if (model === OBJECT_META || this.#define(model, body)) return { ...fieldDoc, $ref: model };
    const isAtomicElsewhere = this.#define(model, { ...body, 'x-kubernetes-map-type': 'atomic' });
    return isAtomicElsewhere
      ? { ...fieldDoc, 'x-kubernetes-map-type': 'granular', $ref: model }
      : { ...body, ...fieldDoc };
  }

  /** Defines a model. Reports whether the model has exactly this schema now. */
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
  if (isQuantity(schema)) return QUANTITY_MODEL;
  if (schema['x-kubernetes-int-or-string'] === true) return INT_OR_STRING;
  return schema.format === 'date-time' ? TIME : undefined;
}
