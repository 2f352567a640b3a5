/** The types that Kubernetes objects of all kinds share. Browser-safe. */

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
}

export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/** Any object as sent over the wire. Types of single kinds narrow the other fields. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** An object that the server has stored, which always has these fields. */
export type Stored<T extends KubeObject = KubeObject> = T & {
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string; creationTimestamp: string };
};

export interface ListMeta {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
}

export interface KubeList<T extends KubeObject = KubeObject> {
  apiVersion: string;
  kind: string;
  metadata: ListMeta;
  items: T[];
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

export interface WatchEvent<T extends KubeObject = KubeObject> {
  type: WatchEventType;
  object: T;
}

interface GroupVersion {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
}

/** The names and version that a client needs to access a resource. */
export interface ResourceType<T extends KubeObject = KubeObject> extends GroupVersion {
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Carries T in the type only; never set. */
  readonly __object?: T;
}

/** Returns the same resource for a reader of other fields of its objects. */
export function resourceAs<T extends KubeObject>(type: ResourceType): ResourceType<T> {
  const { group, version, kind, plural, namespaced } = type;
  return { group, version, kind, plural, namespaced };
}

/** Returns `v1` or `apps/v1`. */
export function apiVersionOf({ group, version }: GroupVersion): string {
  return group === '' ? version : `${group}/${version}`;
}

export function parseApiVersion(apiVersion: string): GroupVersion {
  const slash = apiVersion.indexOf('/');
  if (slash < 0) return { group: '', version: apiVersion };
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** Returns `pods` or `gadgets.golden.local`, the name of a resource in errors and in the store. */
export function groupResource({ group, plural }: { group: string; plural: string }): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** Returns `Pod` or `Gadget.golden.local`, the name of a kind in validation errors. */
export function groupKind({ group, kind }: { group: string; kind: string }): string {
  return group === '' ? kind : `${kind}.${group}`;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isDeleting({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Returns the owner reference of the controller, if the object has one. */
export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller);
}

export function controllerUid(object: KubeObject): string | undefined {
  return controllerOf(object)?.uid;
}
