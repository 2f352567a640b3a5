/**
 * The annotation of client-side apply. Who changes over to server-side apply with kubectl has no conflicts about what
 * it said there, and the annotation goes on saying what was applied last, so that the way back is open.
 */
import { compareFields } from '#kube/field-sets/compare-fields.ts';
import { difference, type FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsOf } from '#kube/field-sets/fields-of.ts';
import { deepClone } from '#kube/deep.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { parseJson } from '#engine/json.ts';
import { ownable, type FieldScope } from '#engine/managed-fields/field-scope.ts';
import { MAX_ANNOTATIONS_BYTES } from '#engine/registry/metadata.ts';

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

/** The fields that the annotation names and that are as it says; undefined = there is none that says so. */
export function allowedByLastApplied(live: KubeObject, scope: FieldScope): FieldSet | undefined {
  const text = live.metadata.annotations?.[ANNOTATION];
  if (!text) return undefined;
  const last = parsed(text);
  if (last === undefined || last.apiVersion !== scope.apiVersion) return undefined;
  const [said, present] = [ownable(last, scope), ownable(live, scope)];
  try {
    const { added, modified, removed } = compareFields(said, present, scope.schema);
    return [modified, added, removed].reduce(difference, fieldsOf(said, scope.schema));
  } catch {
    // It does not fit the kind (any more): then it says nothing.
    return undefined;
  }
}

function parsed(text: string): KubeObject | undefined {
  try {
    const value = parseJson(text);
    return isRecord(value) && isRecord(value['metadata']) ? (value as KubeObject) : undefined;
  } catch {
    return undefined;
  }
}

/** The object, whose annotation, if it has one, tells of this configuration. */
export function followLastApplied(object: KubeObject, config: KubeObject): KubeObject {
  const { annotations } = object.metadata ?? {};
  if (!annotations?.[ANNOTATION]) return object;
  const told = deepClone(config);
  if (isRecord(told.metadata.annotations)) delete told.metadata.annotations[ANNOTATION];
  const next: Record<string, string> = { ...annotations, [ANNOTATION]: `${JSON.stringify(sorted(told))}\n` };
  let bytes = 0;
  for (const [key, value] of Object.entries(next)) bytes += Buffer.byteLength(key) + Buffer.byteLength(value ?? '');
  if (bytes > MAX_ANNOTATIONS_BYTES) delete next[ANNOTATION];
  return { ...object, metadata: { ...object.metadata, annotations: next } };
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key])]),
  );
}
