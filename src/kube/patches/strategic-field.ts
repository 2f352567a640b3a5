/** The patch hints of a field for strategic merge patch, and the identity of the items of its list. */
import { ApiError } from '#kube/api-error.ts';
import { goText } from '#kube/go/go-text.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import type { ItemIdentity } from '#kube/patches/strategic-list-order.ts';

export interface StrategicField {
  readonly strategy: 'merge' | 'replace' | '';
  readonly mergeKey: string;
  /** The schema of the map, or of the items of the list. */
  readonly schema: Schema | undefined;
}

const PLAIN: StrategicField = { strategy: '', mergeKey: '', schema: undefined };

export function fieldOf(parent: Schema | undefined, key: string): StrategicField {
  const properties = parent?.properties;
  const extra = parent?.additionalProperties;
  const schema = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : extra;
  if (typeof schema !== 'object') return PLAIN;
  const strategies = schema['x-kubernetes-patch-strategy']?.split(',') ?? [];
  return {
    strategy: strategies.includes('merge') ? 'merge' : strategies.includes('replace') ? 'replace' : '',
    mergeKey: schema['x-kubernetes-patch-merge-key'] ?? '',
    schema: schema.items ?? schema,
  };
}

/** Returns the function that identifies items of this list, or undefined if its maps have no merge key. */
export function itemIdentity({ mergeKey }: StrategicField, kind: 'map' | 'scalar'): ItemIdentity | undefined {
  if (kind === 'scalar') return (item) => item;
  if (mergeKey === '') return undefined;
  return (item) => {
    if (isRecord(item) && Object.hasOwn(item, mergeKey)) return item[mergeKey];
    throw patchError(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`);
  };
}

/** Returns the kind of the items. The items of a merged list must be all maps, or all scalars of one type. */
export function elementKind(list: readonly unknown[]): 'map' | 'scalar' {
  const typeOf = (item: unknown) => (Array.isArray(item) ? 'list' : item === null ? 'null' : typeof item);
  const first = typeOf(list[0]);
  for (const item of list) {
    const type = typeOf(item);
    if (type === 'list') throw listOfListsError();
    if (type !== first) throw patchError(`list element types are not identical: ${goText(list)}`);
  }
  return first === 'object' ? 'map' : 'scalar';
}

/** A client error with the message of Go. kube-apiserver responds with a 500 here, but kubectl prints the same. */
export const patchError = (message: string) => new ApiError(400, '', message);

const listOfListsError = () =>
  new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', { details: {} });
