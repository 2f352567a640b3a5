/**
 * One served version of a kind. Built-in kinds are values of this type (registry/kinds/); custom kinds are built from
 * their CustomResourceDefinition (custom-kinds/custom-resource.ts). Handlers treat both alike.
 */
import type { StoredForm } from '#engine/registry/stored-form.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { NameRule } from '#kube/names.ts';
import type { Schema } from '#kube/schema.ts';

export type ApiVerb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

export const ALL_VERBS: readonly ApiVerb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

/** A column of Table output. */
export interface TableColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description?: string;
  /** 0 = always shown; above 0 = only with `-o wide`. */
  readonly priority?: number;
  /** Returns the cell. Undefined shows as empty; dates are RFC 3339, and `type: date` shows them as ages. */
  value(object: KubeObject, now: number): string | number | boolean | null | undefined;
}

/** Kind-specific hooks of a write. Each is optional and pure; `prepare*` may change the given object. */
export interface Strategy {
  /**
   * Sets defaults that depend on other fields; idempotent. They belong to the writer's fields; prepareFor* apply them
   * again.
   */
  defaults?(object: KubeObject): void;
  /** Sets the fields that the server decides on create (Namespace phase, Secret stringData ...). */
  prepareForCreate?(object: KubeObject): void;
  /** Copies the fields that an update may not change from `old`. Status was copied already. */
  prepareForUpdate?(object: KubeObject, old: KubeObject): void;
  /** Validates what the schema cannot express: cross-field rules, formats. For create and update. */
  validate?(object: KubeObject): FieldError[];
  /** Validates what only an update may set. */
  validateCreate?(object: KubeObject): FieldError[];
  /** Validates immutable fields and transitions. */
  validateUpdate?(object: KubeObject, old: KubeObject): FieldError[];
  /** Returns Warning headers for an accepted write. */
  warnings?(object: KubeObject): string[];
  /** Returns the seconds that a graceful deletion takes; absent = 0. */
  graceSeconds?(object: KubeObject, requested: number | undefined): number;
  /** Marks an object whose deletion began (Namespace phase). */
  beginDeletion?(object: KubeObject): void;
  /** Propagation of a delete without a policy, unless a finalizer decides it; absent = Background. */
  readonly defaultPropagation?: {
    readonly policy: 'Orphan';
    /** Warning for clients that rely on the default. */
    readonly warning: string;
  };
  /** Reports whether anything besides metadata.finalizers blocks the deletion (Namespace spec.finalizers). */
  hasDeletionBlocker?(object: KubeObject): boolean;
}

export interface ScaleSubresource {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** A subresource as discovery lists it. Those of a kind have kinds of their own: pods/eviction, serviceaccounts/token. */
export interface ExtraSubresource {
  readonly name: string;
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export interface Resource extends ResourceType {
  readonly listKind: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly ApiVerb[];
  /** Key of the store's collection; all versions of a kind share it. */
  readonly collection: string;
  /** The version of the stored bytes; reads convert if it differs from `version`. */
  readonly storageVersion: string;
  /** Converts stored objects of a custom kind to this version; built-in kinds are served as stored. */
  readonly stored?: StoredForm;
  /** The schema of the whole object, except `metadata`, which registry/metadata.ts validates. */
  readonly schema: Schema;
  readonly columns: readonly TableColumn[];
  readonly status: boolean;
  readonly scale?: ScaleSubresource;
  readonly extraSubresources?: readonly ExtraSubresource[];
  /** True if metadata.generation counts changes outside of metadata and status. */
  readonly generation: boolean;
  /** Field selectors besides metadata.name and metadata.namespace, by label. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>;
  readonly nameRule: NameRule;
  /** True if a PUT must name the revision that it replaces, as for custom kinds. */
  readonly needsRevision?: boolean;
  /** True if creating an object asks a question, which its status answers (reviews). Nothing is stored. */
  readonly isReview?: boolean;
  /** True if the kind is built in. Only built-in kinds support strategic merge patches. */
  readonly builtIn: boolean;
  readonly strategy: Strategy;
  /** The warning on each use of a deprecated version. */
  readonly deprecationWarning?: string;
}
