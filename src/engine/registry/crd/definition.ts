/**
 * The type of a valid CustomResourceDefinition, and the schema of its kind. The recursive JSONSchemaProps is not
 * described: `openAPIV3Schema` is kept whole, and structural-rules.ts and openapi-rules.ts check it.
 */
import type { WebhookClientConfig } from '#engine/registry/webhook-client-config.ts';
import type { Condition } from '#kube/conditions.ts';
import type { KubeObject } from '#kube/meta.ts';
import { bool, bytes, int32, int64, list, obj, oneOf, str, time } from '#kube/schema-dsl.ts';
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

const namesSchema = obj(
  {
    plural: str({
      description: 'Plural name of the resource, as in URL paths. The definition must be named <plural>.<group>.',
    }),
    singular: str({ description: 'Singular name of the resource. Defaults to the lower case kind.' }),
    shortNames: list(str(), { atomic: true, description: 'Short names for use on the command line.' }),
    kind: str({ description: 'Kind of the objects, in CamelCase.' }),
    listKind: str({ description: 'Kind of lists of the objects. Defaults to <kind>List.' }),
    categories: list(str(), { atomic: true, description: 'Categories that the resource belongs to, such as all.' }),
  },
  { required: ['plural', 'kind'] },
);

const columnSchema = obj(
  {
    name: str({ description: 'Name of the column.' }),
    type: str({ description: 'OpenAPI type of the values.' }),
    format: str({ description: 'OpenAPI format of the values.' }),
    description: str({ description: 'Description of the column.' }),
    priority: int32({ description: 'Priority of the column. Columns above 0 are shown in wide tables only.' }),
    jsonPath: str({ description: 'JSON path of the values in each object.' }),
  },
  { required: ['name', 'type', 'jsonPath'] },
);

const scaleSchema = obj(
  {
    specReplicasPath: str({ description: 'JSON path of the desired number of replicas, under .spec.' }),
    statusReplicasPath: str({ description: 'JSON path of the observed number of replicas, under .status.' }),
    labelSelectorPath: str({ description: 'JSON path of the label selector, as a string.' }),
  },
  { required: ['specReplicasPath', 'statusReplicasPath'] },
);

const versionSchema = obj(
  {
    name: str({ description: 'Name of the version, such as v1 or v2beta1.' }),
    served: bool({ description: 'Whether the version is served.' }),
    storage: bool({ description: 'Whether objects are stored in this version. Must be true for exactly one version.' }),
    deprecated: bool({ description: 'Whether the version is deprecated. Requests to it then get a warning.' }),
    deprecationWarning: str({ description: 'Text of the warning. Overrides the default text.' }),
    schema: obj({
      openAPIV3Schema: obj({}, { open: true, description: 'Structural schema of the objects.' }),
    }),
    subresources: obj({
      status: obj({}, { open: true, description: 'Enables the status subresource.' }),
      scale: scaleSchema,
    }),
    additionalPrinterColumns: list(columnSchema, { atomic: true, description: 'Additional columns of tables.' }),
    selectableFields: list(obj({ jsonPath: str() }, { required: ['jsonPath'] }), { atomic: true }),
  },
  { required: ['name', 'served', 'storage'] },
);

const conversionSchema = obj(
  {
    strategy: str({ description: 'Conversion strategy: None changes only the apiVersion, Webhook calls a webhook.' }),
    webhook: obj(
      {
        clientConfig: obj({
          url: str(),
          service: obj(
            { namespace: str(), name: str(), path: str(), port: int32({ default: 443 }) },
            { required: ['namespace', 'name'] },
          ),
          caBundle: bytes(),
        }),
        conversionReviewVersions: list(str(), { atomic: true }),
      },
      { required: ['conversionReviewVersions'] },
    ),
  },
  { required: ['strategy'] },
);

const conditionSchema = obj(
  {
    type: str(),
    status: oneOf(['True', 'False', 'Unknown']),
    lastTransitionTime: time(),
    reason: str(),
    message: str(),
    observedGeneration: int64(),
  },
  { required: ['type', 'status'] },
);

export const crdSchema: Schema = obj(
  {
    spec: obj(
      {
        group: str({ description: 'API group of the custom resource.' }),
        names: namesSchema,
        scope: str({ description: 'Scope of the custom resource: Cluster or Namespaced.' }),
        versions: list(versionSchema, {
          atomic: true,
          description: 'Versions of the custom resource, one of which is the storage version.',
        }),
        conversion: conversionSchema,
        preserveUnknownFields: bool({
          description: 'Deprecated: must be false. Use x-kubernetes-preserve-unknown-fields in the schema.',
        }),
      },
      { required: ['group', 'names', 'scope', 'versions'] },
    ),
    status: obj({
      conditions: list(conditionSchema, {
        mapKeys: ['type'],
        description: 'Latest observations of the state of the definition.',
      }),
      acceptedNames: namesSchema,
      storedVersions: list(str(), { atomic: true, description: 'Versions that objects have ever been stored in.' }),
    }),
  },
  { required: ['spec'], description: 'A kind of resource to be served by the API server.' },
);
