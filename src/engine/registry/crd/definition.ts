/**
 * The type of a valid CustomResourceDefinition, and the schema of its kind. The recursive JSONSchemaProps is not
 * described: `openAPIV3Schema` is kept whole, and structural-rules.ts and openapi-rules.ts check it.
 */
import type { WebhookClientConfig } from '#engine/registry/webhook-client-config.ts';
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { conditionStatus, conditionTransition } from '#engine/registry/kinds/meta/condition.ts';
import { webhookClientConfig } from '#engine/registry/kinds/shared/service-reference.ts';
import type { Condition } from '#kube/conditions.ts';
import type { KubeObject } from '#kube/meta.ts';
import { bool, int32, int64, list, obj, oneOf, str } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

export const CRD_GROUP = 'apiextensions.k8s.io';
export const CRD_COLLECTION = `customresourcedefinitions.${CRD_GROUP}`;

/** Blocks the deletion of a definition until its objects are deleted. */
export const CRD_CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

export interface CrdNames {
  plural: string;
  singular?: string;
  shortNames?: string[];
  kind: string;
  listKind?: string;
  categories?: string[];
}

export interface CrdColumn {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath: string;
}

export interface CrdVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: Schema };
  subresources?: {
    status?: Record<string, unknown>;
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string };
  };
  additionalPrinterColumns?: CrdColumn[];
  selectableFields?: { jsonPath: string }[];
}

export interface ConversionWebhookConfig {
  readonly clientConfig?: WebhookClientConfig;
  readonly conversionReviewVersions?: readonly string[];
}

export interface CrdSpec {
  group: string;
  names: CrdNames;
  scope: string;
  versions: CrdVersion[];
  conversion?: { strategy: string; webhook?: ConversionWebhookConfig };
  preserveUnknownFields?: boolean;
}

export interface CrdStatus {
  conditions?: Condition[];
  acceptedNames?: CrdNames;
  storedVersions?: string[];
}

export interface Crd extends KubeObject {
  spec: CrdSpec;
  status?: CrdStatus;
}

/** Casts an object that passed crdSchema. */
export function asCrd(object: KubeObject): Crd {
  return object as Crd;
}

export function storageVersionOf({ spec }: Crd): string | undefined {
  return spec.versions.find((version) => version.storage)?.name;
}

const namesSchema = apiType('apiextensions.v1.CustomResourceDefinitionNames', 'The names of a custom resource.', {
  plural: required(
    1,
    str(),
    'Plural name of the resource, as in URL paths. The definition must be named <plural>.<group>.',
  ),
  singular: optional(2, str(), 'Singular name of the resource. Defaults to the lower case kind.'),
  shortNames: optional(3, list(str(), { atomic: true }), 'Short names for use on the command line.'),
  kind: required(4, str(), 'Kind of the objects, in CamelCase.'),
  listKind: optional(5, str(), 'Kind of lists of the objects. Defaults to <kind>List.'),
  categories: optional(6, list(str(), { atomic: true }), 'Categories that the resource belongs to, such as all.'),
});

const columnSchema = apiType('apiextensions.v1.CustomResourceColumnDefinition', 'A column of a table.', {
  name: required(1, str(), 'Name of the column.'),
  type: required(2, str(), 'OpenAPI type of the values.'),
  format: optional(3, str(), 'OpenAPI format of the values.'),
  description: optional(4, str(), 'Description of the column.'),
  priority: optional(5, int32(), 'Priority of the column. Columns above 0 are shown in wide tables only.'),
  jsonPath: required(6, str(), 'JSON path of the values in each object.'),
});

const scaleSchema = apiType(
  'apiextensions.v1.CustomResourceSubresourceScale',
  'The fields that the scale subresource reads and writes.',
  {
    specReplicasPath: required(1, str(), 'JSON path of the desired number of replicas, under .spec.'),
    statusReplicasPath: required(2, str(), 'JSON path of the observed number of replicas, under .status.'),
    labelSelectorPath: pointer(3, str(), 'JSON path of the label selector, as a string.'),
  },
);

const validationSchema = apiType('apiextensions.v1.CustomResourceValidation', 'The schema of a custom resource.', {
  openAPIV3Schema: pointer(1, obj({}, { open: true }), 'Structural schema of the objects.', {
    message: 'JSONSchemaProps',
  }),
});

const subresourcesSchema = apiType(
  'apiextensions.v1.CustomResourceSubresources',
  'The subresources of a custom resource.',
  {
    status: pointer(1, obj({}, { open: true }), 'Enables the status subresource.', {
      message: 'CustomResourceSubresourceStatus',
    }),
    scale: pointer(2, scaleSchema, 'Enables the scale subresource.'),
  },
);

const selectableFieldSchema = apiType(
  'apiextensions.v1.SelectableField',
  'A field that can be used in field selectors.',
  { jsonPath: required(1, str(), 'JSON path of the field in each object.') },
);

const versionSchema = apiType('apiextensions.v1.CustomResourceDefinitionVersion', 'A version of a custom resource.', {
  name: required(1, str(), 'Name of the version, such as v1 or v2beta1.'),
  served: required(2, bool(), 'Whether the version is served.'),
  storage: required(3, bool(), 'Whether objects are stored in this version. Must be true for exactly one version.'),
  deprecated: optional(7, bool(), 'Whether the version is deprecated. Requests to it then get a warning.'),
  deprecationWarning: pointer(8, str(), 'Text of the warning. Overrides the default text.'),
  schema: pointer(4, validationSchema, 'Schema that validates, prunes and defaults objects.'),
  subresources: pointer(5, subresourcesSchema, 'Subresources of the version.'),
  additionalPrinterColumns: optional(6, list(columnSchema, { atomic: true }), 'Additional columns of tables.'),
  selectableFields: optional(
    9,
    list(selectableFieldSchema, { atomic: true }),
    'Fields that can be used in field selectors.',
  ),
});

const webhookConversion = apiType('apiextensions.v1.WebhookConversion', 'A webhook that converts objects.', {
  clientConfig: pointer(2, webhookClientConfig('apiextensions.v1'), 'How to call the webhook.'),
  conversionReviewVersions: required(
    3,
    list(str(), { atomic: true }),
    'Versions of ConversionReview that the webhook accepts, in order of preference.',
  ),
});

const conversionSchema = apiType(
  'apiextensions.v1.CustomResourceConversion',
  'How objects are converted between versions.',
  {
    strategy: required(1, str(), 'Conversion strategy: None changes only the apiVersion, Webhook calls a webhook.'),
    webhook: pointer(2, webhookConversion, 'Webhook to call. Requires strategy Webhook.'),
  },
);

const crdConditionSchema = apiType(
  'apiextensions.v1.CustomResourceDefinitionCondition',
  'A condition of a CustomResourceDefinition.',
  {
    ...conditionStatus,
    status: required(2, oneOf(['True', 'False', 'Unknown']), 'Status of the condition: True, False or Unknown.'),
    ...conditionTransition(3),
    observedGeneration: optional(6, int64(), 'Generation of the definition that the condition describes.'),
  },
);

const specSchema = apiType(
  'apiextensions.v1.CustomResourceDefinitionSpec',
  'The names, versions and schemas of a custom resource.',
  {
    group: required(1, str(), 'API group of the custom resource.'),
    names: required(3, namesSchema, 'Names of the resource and its kind.'),
    scope: required(4, str(), 'Scope of the custom resource: Cluster or Namespaced.'),
    versions: required(
      7,
      list(versionSchema, { atomic: true }),
      'Versions of the custom resource, one of which is the storage version.',
    ),
    conversion: pointer(9, conversionSchema, 'How objects are converted between versions.'),
    preserveUnknownFields: optional(
      10,
      bool(),
      'Deprecated: must be false. Use x-kubernetes-preserve-unknown-fields in the schema.',
    ),
  },
);

const statusSchema = apiType(
  'apiextensions.v1.CustomResourceDefinitionStatus',
  'The current status of a CustomResourceDefinition.',
  {
    conditions: optional(
      1,
      list(crdConditionSchema, { mapKeys: ['type'] }),
      'Latest observations of the state of the definition.',
      { omitEmpty: false },
    ),
    acceptedNames: optional(2, namesSchema, 'Names in use. They may differ from those in the spec.'),
    storedVersions: optional(3, list(str(), { atomic: true }), 'Versions that objects have ever been stored in.', {
      omitEmpty: false,
    }),
  },
);

export const crdSchema: Schema = apiType(
  'apiextensions.v1.CustomResourceDefinition',
  'A kind of resource to be served by the API server.',
  {
    spec: required(2, specSchema, 'Names, versions and schemas of the custom resource.'),
    status: optional(3, statusSchema, 'Current status of the definition. Populated by the system. Read-only.'),
  },
);
