/**
 * A CustomResourceDefinition as the engine reads it once it is valid, and its kind's own schema. The recursion of
 * JSONSchemaProps ends at `openAPIV3Schema`, which is kept whole; schema-rules.ts looks inside.
 */
import type { ConversionConfig } from '#engine/conversion/conversion-webhook.ts';
import type { Condition } from '#kube/conditions.ts';
import type { KubeObject } from '#kube/meta.ts';
import { bool, bytes, int32, int64, list, obj, oneOf, str, time } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

export const CRD_GROUP = 'apiextensions.k8s.io';
export const CRD_COLLECTION = `customresourcedefinitions.${CRD_GROUP}`;

/** Holds a deleted definition until its objects are gone. */
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

export interface CrdSpec {
  group: string;
  names: CrdNames;
  scope: string;
  versions: CrdVersion[];
  conversion?: { strategy: string; webhook?: ConversionConfig };
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

/** For objects that passed crdSchema. */
export function asCrd(object: KubeObject): Crd {
  return object as Crd;
}

export function storageVersionOf({ spec }: Crd): string | undefined {
  return spec.versions.find((version) => version.storage)?.name;
}

const namesSchema = obj(
  {
    plural: str({ description: 'Plural name, as in the path; the definition is called <plural>.<group>.' }),
    singular: str({ description: 'Singular name; the lower-case kind if not given.' }),
    shortNames: list(str(), { atomic: true, description: 'Short names, as used with kubectl get.' }),
    kind: str({ description: 'Kind of the objects, in CamelCase.' }),
    listKind: str({ description: 'Kind of their lists; <kind>List if not given.' }),
    categories: list(str(), { atomic: true, description: 'Groups of kinds that this one belongs to, as all.' }),
  },
  { required: ['plural', 'kind'] },
);

const columnSchema = obj(
  {
    name: str({ description: 'Heading of the column.' }),
    type: str({ description: 'OpenAPI type of the cells.' }),
    format: str({ description: 'OpenAPI format of the cells.' }),
    description: str({ description: 'What the column shows.' }),
    priority: int32({ description: '0 shows always, more only in wide view.' }),
    jsonPath: str({ description: 'Path of the value.' }),
  },
  { required: ['name', 'type', 'jsonPath'] },
);

const scaleSchema = obj(
  {
    specReplicasPath: str({ description: 'Path of the wanted replicas below .spec.' }),
    statusReplicasPath: str({ description: 'Path of the actual replicas below .status.' }),
    labelSelectorPath: str({ description: 'Path of the label selector as a string.' }),
  },
  { required: ['specReplicasPath', 'statusReplicasPath'] },
);

const versionSchema = obj(
  {
    name: str({ description: 'Version name, as v1 or v2beta1.' }),
    served: bool({ description: 'Whether the version is served.' }),
    storage: bool({ description: 'Whether objects are stored in it; exactly one version is.' }),
    deprecated: bool({ description: 'Whether requests for it draw a warning.' }),
    deprecationWarning: str({ description: 'The warning, in place of the usual one.' }),
    schema: obj({
      openAPIV3Schema: obj({}, { open: true, description: 'Structural schema of the objects.' }),
    }),
    subresources: obj({
      status: obj({}, { open: true, description: 'Present: status is written apart.' }),
      scale: scaleSchema,
    }),
    additionalPrinterColumns: list(columnSchema, { atomic: true, description: 'Columns besides the name.' }),
    selectableFields: list(obj({ jsonPath: str() }, { required: ['jsonPath'] }), { atomic: true }),
  },
  { required: ['name', 'served', 'storage'] },
);

const conversionSchema = obj(
  {
    strategy: str({ description: 'None: only apiVersion changes between versions. Webhook: another one converts.' }),
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
        group: str({ description: 'API group of the kind.' }),
        names: namesSchema,
        scope: str({ description: 'Cluster or Namespaced.' }),
        versions: list(versionSchema, { atomic: true, description: 'All versions of the kind.' }),
        conversion: conversionSchema,
        preserveUnknownFields: bool({ description: 'Must be false; schemas say where unknown fields are kept.' }),
      },
      { required: ['group', 'names', 'scope', 'versions'] },
    ),
    status: obj({
      conditions: list(conditionSchema, { mapKeys: ['type'], description: 'What holds for the definition.' }),
      acceptedNames: namesSchema,
      storedVersions: list(str(), { atomic: true, description: 'Versions in which objects were ever stored.' }),
    }),
  },
  { required: ['spec'], description: 'Defines a kind that the API server serves.' },
);
