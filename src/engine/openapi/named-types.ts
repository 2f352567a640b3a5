/**
 * Splits the schemas of built-in kinds into the named types that Kubernetes defines for their nested objects, and adds
 * the descriptions of type-docs/. A reference holds the bare model name; v2 and v3 format it differently.
 */
import { compareText } from '#lib/compare-text.ts';
import { INT_OR_STRING, OBJECT_META, QUANTITY_MODEL, TIME } from '#engine/openapi/model-names.ts';
import { resolveModel, findTypeDoc } from '#engine/openapi/type-docs/all-type-docs.ts';
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { metadataSchema } from '#engine/registry/metadata.ts';
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
    this.#define(OBJECT_META, this.ofKind(metadataSchema, OBJECT_META));
  }

  /** Returns the schema of a kind with its nested types replaced by references. `model` is the kind's own name. */
  ofKind(schema: Schema, model: string): DocumentSchema {
    const typeDoc = findTypeDoc(model);
    const description = typeDoc?.[''];
    const out: DocumentSchema = { ...schema };
    if (typeof description === 'string') out.description ??= description;
    if (schema.properties === undefined) return out;
    out.properties = Object.create(null) as Record<string, DocumentSchema>;
    for (const [name, property] of Object.entries(schema.properties)) {
      const fieldDoc = typeDoc !== undefined && Object.hasOwn(typeDoc, name) ? typeDoc[name]! : [undefined, undefined];
      const [text, type] = typeof fieldDoc === 'string' ? [fieldDoc, undefined] : fieldDoc;
      out.properties[name] = this.#field(property, text, type === undefined ? undefined : resolveModel(type, model));
    }
    return out;
  }

  #field(schema: Schema, fieldDescription: string | undefined, model: string | undefined): DocumentSchema {
    const scalar = scalarModel(schema);
    if (scalar !== undefined) return this.#reference(schema, fieldDescription, scalar);
    if (schema.properties !== undefined) {
      return model === undefined
        ? described(this.ofKind(schema, ''), fieldDescription)
        : this.#reference(schema, fieldDescription, model);
    }
    const out = described(schema, fieldDescription);
    if (schema.items !== undefined) return { ...out, items: this.#field(schema.items, undefined, model) };
    const { additionalProperties: values } = schema;
    return isRecord(values) ? { ...out, additionalProperties: this.#field(values, undefined, model) } : out;
  }

  /**
   * Returns a reference to a model. Two different schemas can have the same model name: the first one defines it, the
   * other is inlined.
   */
  #reference(schema: Schema, fieldDescription: string | undefined, model: string): DocumentSchema {
    const { description = fieldDescription, ...rest } = schema;
    const fieldDoc: DocumentSchema = description === undefined ? {} : { description };
    for (const key of FIELD_KEYWORDS) {
      if (rest[key] !== undefined) Object.assign(fieldDoc, { [key]: rest[key] });
      delete rest[key];
    }
    const body = this.ofKind(rest, model);
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

function described(schema: DocumentSchema, fieldDescription: string | undefined): DocumentSchema {
  return fieldDescription === undefined || schema.description !== undefined
    ? schema
    : { ...schema, description: fieldDescription };
}
