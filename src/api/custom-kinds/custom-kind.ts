/** Defines a custom kind as one value, and builds its CustomResourceDefinition. */
import { groupResource, type KubeObject, type ResourceType } from '#kube/meta.ts';
import { NODE_COMPANION_ANNOTATION, NODE_FIELDS_ANNOTATION, NODE_LABEL_ANNOTATION } from '#kube/node-user.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema, ValidationRule } from '#kube/schema.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
  /** Shown only with -o wide. */
  readonly wide?: boolean;
}

export interface CustomKind<T extends KubeObject = KubeObject> {
  readonly type: ResourceType<T>;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories?: readonly string[];
  readonly columns: readonly PrinterColumn[];
  /** Schema of the spec, which users write. Unknown fields are not pruned: admission refuses them by name. */
  readonly spec: Schema;
  /** Schema of the status, which our components write through the status subresource. */
  readonly status?: Schema;
  readonly specRequired?: boolean;
  /** CEL rules about the whole object, such as its name. */
  readonly rules?: readonly ValidationRule[];
  readonly description: string;
  /** The places in which objects name their nodes. Nodes then read only objects that name them, and list by the label. */
  readonly nodes?:
    | { readonly label: string; readonly fields: readonly string[] }
    /** Objects of this kind belong to the objects of the same name of another kind. */
    | { readonly companion: ResourceType };
}

function crdNameOf({ type }: CustomKind): string {
  return groupResource(type);
}

/** Builds the definition that the operator applies. Tests and the API reference use it as well. */
export function buildCrd(kind: CustomKind): KubeObject {
  const { type, singular, shortNames, categories, columns } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: crdNameOf(kind),
      ...(kind.nodes === undefined ? {} : { annotations: nodeAnnotations(kind.nodes) }),
    },
    spec: {
      group: type.group,
      scope: type.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: type.kind,
        listKind: `${type.kind}List`,
        plural: type.plural,
        singular,
        shortNames: [...shortNames],
        ...(categories === undefined ? {} : { categories: [...categories] }),
      },
      versions: [
        {
          name: type.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: buildRootSchema(kind) },
          ...(kind.status === undefined ? {} : { subresources: { status: {} } }),
          additionalPrinterColumns: columns.map(buildPrinterColumn),
        },
      ],
    },
  };
}

function nodeAnnotations(nodes: NonNullable<CustomKind['nodes']>): Record<string, string> {
  if ('companion' in nodes) return { [NODE_COMPANION_ANNOTATION]: groupResource(nodes.companion) };
  const { label, fields } = nodes;
  return { [NODE_LABEL_ANNOTATION]: label, [NODE_FIELDS_ANNOTATION]: fields.join(',') };
}

function buildRootSchema({ description, spec, status, specRequired = true, rules }: CustomKind): Schema {
  return {
    type: 'object',
    description,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: toStructuralSchema(spec, { open: true }),
      ...(status === undefined ? {} : { status: toStructuralSchema(status, { open: false }) }),
    },
    ...(specRequired ? { required: ['spec'] } : {}),
    ...(rules === undefined ? {} : { 'x-kubernetes-validations': [...rules] }),
  };
}

/**
 * Converts to a structural schema, as definitions require. Quantities become int-or-string, because alternatives may
 * not have types; admission checks their syntax. With `open`, objects keep fields that the schema does not know.
 */
function toStructuralSchema(schema: Schema, how: { readonly open: boolean }): Schema {
  if (isQuantity(schema)) {
    const { oneOf: _, ...rest } = schema;
    return { ...rest, 'x-kubernetes-int-or-string': true };
  }
  const { properties, items, additionalProperties } = schema;
  return {
    ...schema,
    ...(items === undefined ? {} : { items: toStructuralSchema(items, how) }),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: toStructuralSchema(additionalProperties, how) }
      : {}),
    ...(properties === undefined
      ? {}
      : {
          ...(how.open ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, child]) => [name, toStructuralSchema(child, how)]),
          ),
        }),
  };
}

function buildPrinterColumn({ name, type, jsonPath, description, wide }: PrinterColumn) {
  return { name, type, jsonPath, ...(description && { description }), ...(wide === true ? { priority: 1 } : {}) };
}
