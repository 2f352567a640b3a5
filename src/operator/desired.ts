/** A desired object, and the smallest change that brings the stored object to the desired state. Pure. */
import { createHash } from 'node:crypto';
import { deepEqual } from '#kube/deep.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import { apiVersionOf, groupResource, isRecord } from '#kube/meta.ts';
import type { KubeObject, ObjectMeta, ResourceType, Stored } from '#kube/meta.ts';
import type { Change, PatchChange } from '#runtime/plan.ts';

export interface DesiredObject {
  readonly type: ResourceType;
  readonly object: KubeObject;
  /** True if the object is only created, and belongs to the administrator afterwards: settings. */
  readonly once?: boolean;
  /** Set at creation only; the administrator may change them afterwards. */
  readonly initialAnnotations?: Readonly<Record<string, string>>;
  /** True if another controller writes the object as well: then we own only the fields in `object`, and no labels. */
  readonly isShared?: boolean;
}

/** The desired objects with their stored state. */
export type PresentObjects = readonly (readonly [DesiredObject, Stored | undefined])[];

/**
 * Hash of the desired state that an object was written from. If it differs, fields that we no longer want are removed.
 */
const HASH_ANNOTATION = 'operator.selfsame.io/hash';
const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'selfsame-operator' };

export function desiredObject(
  type: ResourceType,
  metadata: ObjectMeta & { name: string },
  fields: Readonly<Record<string, unknown>> = {},
  options: Pick<DesiredObject, 'once' | 'initialAnnotations' | 'isShared'> = {},
): DesiredObject {
  const kind = { apiVersion: apiVersionOf(type), kind: type.kind };
  if (options.isShared === true) return { type, object: { ...kind, metadata, ...fields }, ...options };
  const labels = { ...MANAGED_BY, ...metadata.labels };
  const hash = createHash('sha256')
    .update(JSON.stringify([labels, metadata.annotations, fields]))
    .digest('hex');
  const annotations = { ...metadata.annotations, [HASH_ANNOTATION]: hash.slice(0, 16) };
  return { type, object: { ...kind, metadata: { ...metadata, labels, annotations }, ...fields }, ...options };
}

/** Returns `clusterroles.rbac.authorization.k8s.io/selfsame:node`, with the namespace if there is one. */
export function idOf({ type, object: { metadata } }: Pick<DesiredObject, 'type' | 'object'>): string {
  return [groupResource(type), metadata.namespace, metadata.name].filter((part) => part !== undefined).join('/');
}

/**
 * Returns the change that restores the desired state; undefined if there is no difference or the object is being
 * deleted.
 */
export function repair(wanted: DesiredObject, present: Stored | undefined): Change | undefined {
  const { type, object, once = false, initialAnnotations, isShared = false } = wanted;
  if (present === undefined) {
    const annotations = { ...initialAnnotations, ...object.metadata.annotations };
    const complete = { ...object, metadata: { ...object.metadata, annotations } };
    return { do: 'create', type, object: complete, why: `${idOf(wanted)} is missing` };
  }
  if (once || present.metadata.deletionTimestamp !== undefined) return undefined;
  const patch = isShared ? buildSharedPatch(object, present) : buildOwnPatch(object, present);
  if (patch === undefined) return undefined;
  const { namespace, name, uid } = present.metadata;
  const why = `${idOf(wanted)} differed from its desired state`;
  return { do: 'patch', type, name: { namespace, name }, uid, patch, reason: 'Restored', why };
}

function buildOwnPatch(wanted: KubeObject, present: Stored): PatchChange['patch'] | undefined {
  const body = buildDifference(wanted, present);
  return body.length === 0 ? undefined : { type: 'json', body };
}

/** Merges our fields into the stored object, whichever version wrote them before. */
function buildSharedPatch(wanted: KubeObject, present: Stored): PatchChange['patch'] | undefined {
  const fields = Object.entries(wanted).filter(([field]) => !IDENTIFYING_FIELDS.has(field));
  const body = Object.fromEntries(fields.filter(([field, value]) => !isSatisfied(present[field], value)));
  return Object.keys(body).length === 0 ? undefined : { type: 'merge', body };
}

/** Replaces whole fields, so that additions of users are removed; other labels are kept. */
function buildDifference(wanted: KubeObject, present: Stored): unknown[] {
  const outdated = present.metadata.annotations?.[HASH_ANNOTATION] !== wanted.metadata.annotations?.[HASH_ANNOTATION];
  const fields = Object.entries(wanted).filter(
    ([field, value]) => !IDENTIFYING_FIELDS.has(field) && (outdated || !isSatisfied(present[field], value)),
  );
  return [
    ...metadataPatches('labels', wanted, present),
    ...metadataPatches('annotations', wanted, present),
    ...fields.map(([field, value]) => ({ op: 'add', path: formatPointer([field]), value })),
  ];
}

const IDENTIFYING_FIELDS = new Set(['apiVersion', 'kind', 'metadata']);

function metadataPatches(part: 'labels' | 'annotations', wanted: KubeObject, present: Stored): unknown[] {
  const [own, stored] = [wanted.metadata[part] ?? {}, present.metadata[part]];
  const missing = Object.entries(own).filter(([key, value]) => stored?.[key] !== value);
  if (missing.length === 0) return [];
  if (stored === undefined) return [{ op: 'add', path: formatPointer(['metadata', part]), value: own }];
  return missing.map(([key, value]) => ({ op: 'add', path: formatPointer(['metadata', part, key]), value }));
}

/**
 * Reports whether `present` has everything that `wanted` has. Fields that the server fills in do not count. Values that
 * are wanted empty or absent (null) must be so, and lists must have the same length.
 */
function isSatisfied(present: unknown, wanted: unknown): boolean {
  if (wanted === null || isEmpty(wanted)) return present === undefined || present === null || isEmpty(present);
  if (Array.isArray(wanted)) {
    if (!Array.isArray(present) || present.length !== wanted.length) return false;
    return wanted.every((item, i) => isSatisfied(present[i], item));
  }
  if (!isRecord(wanted)) return deepEqual(present, wanted);
  return isRecord(present) && Object.entries(wanted).every(([key, value]) => isSatisfied(present[key], value));
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0;
}
