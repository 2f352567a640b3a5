/**
 * What the engine knows of one served version of a kind. Built-in kinds are values of this type (registry/kinds/),
 * custom ones are made from their CustomResourceDefinition (registry/custom-resource.ts); handlers see no difference.
 */
import type { StoredForm } from '#engine/conversion/stored-form.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

export const ALL_VERBS: readonly Verb[] = [
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
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description?: string;
  /** 0 shows always, anything above only with `-o wide`. */
  readonly priority?: number;
  /** The cell; `undefined` shows as nothing, dates are RFC 3339 and shown as ages by `type: date`. */
  value(object: KubeObject, now: number): string | number | boolean | null | undefined;
}

/** Kind-specific rules around a write; each is optional and pure. `prepare*` may change the object that it is given. */
export interface Strategy {
  /** Defaults that depend on other fields; idempotent. They belong to the writer; prepareFor* see to them once more. */
  defaults?(object: KubeObject): void;
  /** Fills what the server decides on create (Namespace phase, Secret stringData ...). */
  prepareForCreate?(object: KubeObject): void;
  /** Copies what an update may not touch from `old`. Status was handled already. */
  prepareForUpdate?(object: KubeObject, old: KubeObject): void;
  /** Beyond the schema: cross-field rules, formats; for create and update alike. */
  validate?(object: KubeObject): FieldError[];
  /** Immutable fields and transitions. */
  validateUpdate?(object: KubeObject, old: KubeObject): FieldError[];
  /** Warning headers for a write that is accepted. */
  warnings?(object: KubeObject): string[];
  /** Seconds that a delete waits for whoever runs the object; absent = none. */
  graceSeconds?(object: KubeObject, requested: number | undefined): number;
  /** Marks an object whose deletion began (Namespace phase). */
  beginDeletion?(object: KubeObject): void;
  /** What a delete without a propagation policy does with dependents, unless a finalizer says so; absent = Background. */
  readonly defaultPropagation?: {
    readonly policy: 'Orphan';
    /** For those who rely on it. */
    readonly warning: string;
  };
  /** Whether something besides metadata.finalizers still holds an object under deletion (Namespace spec.finalizers). */
  heldBack?(object: KubeObject): boolean;
}

export type NameRule = 'subdomain' | 'label' | 'label1035' | 'path-segment';

export interface ScaleSubresource {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** A subresource that is not an object's own part: pods/eviction, serviceaccounts/token. Listed in discovery. */
export interface ExtraSubresource {
  readonly name: string;
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
}

export interface Resource extends ResourceType {
  readonly listKind: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  /** Key of the store's collection; versions of one kind share it. */
  readonly collection: string;
  /** The version that stored bytes are in; where it differs from `version`, reads convert. */
  readonly storageVersion: string;
  /** How stored objects of a custom kind come to be of this version; built-in ones are shown as they are stored. */
  readonly stored?: StoredForm;
  /** The whole object. `metadata` is checked by registry/metadata.ts, whatever stands here. */
  readonly schema: Schema;
  readonly columns: readonly Column[];
  readonly status: boolean;
  readonly scale?: ScaleSubresource;
  readonly extraSubresources?: readonly ExtraSubresource[];
  /** Whether metadata.generation counts changes outside of metadata and status. */
  readonly generation: boolean;
  /** Field selectors besides metadata.name and metadata.namespace: label → value. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>;
  readonly nameRule: NameRule;
  /** A PUT must say which revision it replaces; custom kinds always ask for it. */
  readonly needsRevision?: boolean;
  /** A question, not a thing: a create is answered in its status, and nothing is stored. */
  readonly asked?: boolean;
  /** Strategic merge patch is for built-in kinds only. */
  readonly builtIn: boolean;
  readonly strategy: Strategy;
  /** Deprecated versions warn on each use. */
  readonly deprecationWarning?: string;
}
