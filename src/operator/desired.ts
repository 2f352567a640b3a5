/** An object that is to be there, and the smallest change that makes it so. Pure. */
import { createHash } from 'node:crypto';
import { deepEqual } from '#kube/deep.ts';
import { formatPointer } from '#kube/json-pointer.ts';
import { apiVersionOf, groupResource, isRecord } from '#kube/meta.ts';
import type { KubeObject, ObjectMeta, ResourceType, Stored } from '#kube/meta.ts';
import type { Change, PatchChange } from '#runtime/plan.ts';

export interface Desired {
  readonly type: ResourceType;
  readonly object: KubeObject;
  /** Made where it is missing, and then other people's: settings. */
  readonly once?: boolean;
  /** Set when it is made, and then other people's. */
  readonly initialAnnotations?: Readonly<Record<string, string>>;
  /** Another controller writes the object, too: ours are the fields that `object` names, at any depth, and no labels. */
  readonly isShared?: boolean;
}

/** What is wanted, and what there is of it. */
export type Present = readonly (readonly [Desired, Stored | undefined])[];

/** Which version of ours an object was written from. What we do not ask for any more is gone with the next one. */
const HASH_ANNOTATION = 'operator.selfsame.io/hash';
const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'selfsame-operator' };

export function desired(
  type: ResourceType,
  metadata: ObjectMeta & { name: string },
  fields: Readonly<Record<string, unknown>> = {},
  options: Pick<Desired, 'once' | 'initialAnnotations' | 'isShared'> = {},
): Desired {
  const kind = { apiVersion: apiVersionOf(type), kind: type.kind };
  if (options.isShared === true) return { type, object: { ...kind, metadata, ...fields }, ...options };
  const labels = { ...MANAGED_BY, ...metadata.labels };
  const hash = createHash('sha256')
    .update(JSON.stringify([labels, metadata.annotations, fields]))
    .digest('hex');
  const annotations = { ...metadata.annotations, [HASH_ANNOTATION]: hash.slice(0, 16) };
  return { type, object: { ...kind, metadata: { ...metadata, labels, annotations }, ...fields }, ...options };
}

/** `clusterroles.rbac.authorization.k8s.io/selfsame:node`; with the namespace where there is one. */
export function idOf({ type, object: { metadata } }: Pick<Desired, 'type' | 'object'>): string {
  return [groupResource(type), metadata.namespace, metadata.name].filter((part) => part !== undefined).join('/');
}

/** Returns the change that makes the object as wanted, or undefined if it is so, or is still being deleted. */
export function repair(wanted: Desired, present: Stored | undefined): Change | undefined {
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
  const why = `${idOf(wanted)} was not as it should be`;
  return { do: 'patch', type, name: { namespace, name }, uid, patch, reason: 'Restored', why };
}

function buildOwnPatch(wanted: KubeObject, present: Stored): PatchChange['patch'] | undefined {
  const body = difference(wanted, present);
  return body.length === 0 ? undefined : { type: 'json', body };
}

/** Merges our fields into theirs, whichever version of ours wrote them before. */
function buildSharedPatch(wanted: KubeObject, present: Stored): PatchChange['patch'] | undefined {
  const fields = Object.entries(wanted).filter(([field]) => !OURS_ALWAYS.has(field));
  const body = Object.fromEntries(fields.filter(([field, value]) => !holds(present[field], value)));
  return Object.keys(body).length === 0 ? undefined : { type: 'merge', body };
}

/** Whole fields are written, so that nothing that somebody put into them is left; labels of others stay. */
function difference(wanted: KubeObject, present: Stored): unknown[] {
  const outdated = present.metadata.annotations?.[HASH_ANNOTATION] !== wanted.metadata.annotations?.[HASH_ANNOTATION];
  const fields = Object.entries(wanted).filter(
    ([field, value]) => !OURS_ALWAYS.has(field) && (outdated || !holds(present[field], value)),
  );
  return [
    ...notes('labels', wanted, present),
    ...notes('annotations', wanted, present),
    ...fields.map(([field, value]) => ({ op: 'add', path: formatPointer([field]), value })),
  ];
}

const OURS_ALWAYS = new Set(['apiVersion', 'kind', 'metadata']);

function notes(part: 'labels' | 'annotations', wanted: KubeObject, present: Stored): unknown[] {
  const [ours, theirs] = [wanted.metadata[part] ?? {}, present.metadata[part]];
  const missing = Object.entries(ours).filter(([key, value]) => theirs?.[key] !== value);
  if (missing.length === 0) return [];
  if (theirs === undefined) return [{ op: 'add', path: formatPointer(['metadata', part]), value: ours }];
  return missing.map(([key, value]) => ({ op: 'add', path: formatPointer(['metadata', part, key]), value }));
}

/**
 * Whether `present` says all that `wanted` says. Fields that the server fills in do not count; what we want to be empty,
 * or not to be there (null), must be so, and lists are as long as ours.
 */
function holds(present: unknown, wanted: unknown): boolean {
  if (wanted === null || isEmpty(wanted)) return present === undefined || present === null || isEmpty(present);
  if (Array.isArray(wanted)) {
    if (!Array.isArray(present) || present.length !== wanted.length) return false;
    return wanted.every((item, i) => holds(present[i], item));
  }
  if (!isRecord(wanted)) return deepEqual(present, wanted);
  return isRecord(present) && Object.entries(wanted).every(([key, value]) => holds(present[key], value));
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0;
}
