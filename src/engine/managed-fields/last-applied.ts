/**
 * The annotation of client-side apply. Migrating to server-side apply with kubectl causes no conflicts for fields in
 * it, and the annotation is kept up to date, so that going back is possible.
 */
import { compareFields } from '#kube/field-sets/compare-fields.ts';
import { difference, type FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsOf } from '#kube/field-sets/fields-of.ts';
import { deepClone } from '#kube/deep.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { parseJson } from '#engine/encoding/json.ts';
import { ownablePart, type FieldScope } from '#engine/managed-fields/field-scope.ts';
import { MAX_ANNOTATIONS_BYTES } from '#engine/registry/metadata.ts';

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

/** Returns the fields in the annotation whose values still match the object, or undefined without an annotation. */
export function allowedByLastApplied(live: KubeObject, scope: FieldScope): FieldSet | undefined {
  const text = live.metadata.annotations?.[ANNOTATION];
  if (!text) return undefined;
  const last = parseAnnotation(text);
  if (last === undefined || last.apiVersion !== scope.apiVersion) return undefined;
  const [lastApplied, present] = [ownablePart(last, scope), ownablePart(live, scope)];
  try {
    const { added, modified, removed } = compareFields(lastApplied, present, scope.schema);
    return [modified, added, removed].reduce(difference, fieldsOf(lastApplied, scope.schema));
  } catch {
    // The annotation does not match the kind (any more), so it is ignored.
    return undefined;
  }
}

function parseAnnotation(text: string): KubeObject | undefined {
  try {
    const value = parseJson(text);
    return isRecord(value) && isRecord(value['metadata']) ? (value as KubeObject) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the object with its annotation, if any, set to this configuration. */
export function updateLastApplied(object: KubeObject, config: KubeObject): KubeObject {
  const { annotations } = object.metadata ?? {};
  if (!annotations?.[ANNOTATION]) return object;
  const applied = deepClone(config);
  if (isRecord(applied.metadata.annotations)) delete applied.metadata.annotations[ANNOTATION];
  const next: Record<string, string> = { ...annotations, [ANNOTATION]: `${JSON.stringify(sortKeys(applied))}\n` };
  let bytes = 0;
  for (const [key, value] of Object.entries(next)) bytes += Buffer.byteLength(key) + Buffer.byteLength(value ?? '');
  if (bytes > MAX_ANNOTATIONS_BYTES) delete next[ANNOTATION];
  return { ...object, metadata: { ...object.metadata, annotations: next } };
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sortKeys(value[key])]),
  );
}
