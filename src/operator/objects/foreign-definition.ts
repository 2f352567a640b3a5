/**
 * Definitions of third-party kinds, for clusters that do not have them: created if they are missing and never changed,
 * because their own project maintains them.
 */
import type { PrinterColumn } from '#api/custom-kinds/custom-kind.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import { str } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '#kube/core-kinds.ts';

export interface ForeignKind {
  readonly type: ResourceType;
  readonly shortNames: readonly string[];
  /** Defaults to the kind in lower case. */
  readonly singular?: string;
  readonly description: string;
  /** Fields in addition to apiVersion, kind and metadata. */
  readonly properties: Readonly<Record<string, Schema>>;
  readonly required: readonly string[];
  readonly columns: readonly PrinterColumn[];
}

interface DefinitionOptions {
  readonly annotations?: Record<string, string>;
}

export function foreignDefinition(kind: ForeignKind, { annotations = {} }: DefinitionOptions = {}): DesiredObject {
  const { type, shortNames, singular = type.kind.toLowerCase(), description, properties, required, columns } = kind;
  const base: Record<string, Schema> = { apiVersion: str(), kind: str(), metadata: { type: 'object' } };
  const openAPIV3Schema: Schema = {
    type: 'object',
    description,
    properties: { ...base, ...properties },
    required: [...required],
  };
  const spec = {
    group: type.group,
    scope: type.namespaced ? 'Namespaced' : 'Cluster',
    names: {
      kind: type.kind,
      listKind: `${type.kind}List`,
      plural: type.plural,
      singular,
      shortNames,
    },
    versions: [
      {
        name: type.version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema },
        ...(Object.hasOwn(properties, 'status') ? { subresources: { status: {} } } : {}),
        additionalPrinterColumns: columns,
      },
    ],
  };
  return desiredObject(
    CUSTOM_RESOURCE_DEFINITIONS,
    { name: groupResource(type), annotations },
    { spec },
    { once: true },
  );
}
