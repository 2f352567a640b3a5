/** What the schema says of a field to a strategic merge, and how the items of its lists are told apart. */
import { ApiError } from '#kube/api-error.ts';
import { goText } from '#kube/go-text.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import type { Identity } from '#kube/strategic-list-order.ts';

export interface Field {
  readonly strategy: 'merge' | 'replace' | '';
  readonly mergeKey: string;
  /** Of the map itself, or of the items of the list. */
  readonly schema: Schema | undefined;
}

const PLAIN: Field = { strategy: '', mergeKey: '', schema: undefined };

export function fieldOf(parent: Schema | undefined, key: string): Field {
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

/** How items of this list are told apart; undefined where maps have no merge key. */
export function identityOf({ mergeKey }: Field, kind: 'map' | 'scalar'): Identity | undefined {
  if (kind === 'scalar') return (item) => item;
  if (mergeKey === '') return undefined;
  return (item) => {
    if (isRecord(item) && Object.hasOwn(item, mergeKey)) return item[mergeKey];
    throw fault(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`);
  };
}

/** The items of a list that is merged are all maps, or all scalars of one type. */
export function elementKind(list: readonly unknown[]): 'map' | 'scalar' {
  const typeOf = (item: unknown) => (Array.isArray(item) ? 'list' : item === null ? 'null' : typeof item);
  const first = typeOf(list[0]);
  for (const item of list) {
    const type = typeOf(item);
    if (type === 'list') throw listOfLists();
    if (type !== first) throw fault(`list element types are not identical: ${goText(list)}`);
  }
  return first === 'object' ? 'map' : 'scalar';
}

/** The words are Go's. kube-apiserver answers with a bare 500; but it is the client's fault, and kubectl prints the same. */
export const fault = (message: string) => new ApiError(400, '', message);

const listOfLists = () =>
  new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', { details: {} });
