/**
 * Strategic merge patch: a JSON merge patch that reads from the schema which lists are sets or maps, and accepts the
 * directives `$patch: replace|delete`, `$retainKeys`, `$setElementOrder/<list>` and `$deleteFromPrimitiveList/<list>`.
 * In fields that the schema does not have, maps are merged by key and lists are replaced.
 *
 * Messages and codes are those of kube-apiserver, except for its 500s (see `patchError`).
 */
import { badRequest } from '#kube/api-error.ts';
import { goText, goType } from '#kube/go/go-text.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { elementKind, patchError, type StrategicField, fieldOf, itemIdentity } from '#kube/patches/strategic-field.ts';
import { orderMerged } from '#kube/patches/strategic-list-order.ts';

type Fields = Record<string, unknown>;

const PATCH = '$patch';
const RETAIN_KEYS = '$retainKeys';
const SET_ORDER = '$setElementOrder';
const DELETE_FROM = '$deleteFromPrimitiveList';

/** Returns the merged document. Neither input changes; the result shares unchanged parts with them. */
export function applyStrategicMergePatch(document: unknown, patch: unknown, schema: Schema): unknown {
  for (const value of [document, patch]) {
    if (isRecord(value)) continue;
    const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
    throw badRequest(`json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`);
  }
  return mergeMap(document as Fields, patch as Fields, schema);
}

function mergeMap(original: Fields, patch: Fields, schema: Schema | undefined): Fields {
  if (Object.hasOwn(patch, PATCH)) return replaceMap(patch);
  const merged = retainKeys(original, patch);
  const done = mergeOrderedLists(merged, patch, schema);
  for (const key of Object.keys(patch)) {
    if (key === RETAIN_KEYS || key === '__proto__' || key.startsWith(SET_ORDER) || done?.has(key)) continue;
    if (key.startsWith(DELETE_FROM)) deleteFromList(merged, key, patch[key]);
    else mergeField(merged, key, patch[key], schema);
  }
  return merged;
}

function mergeField(merged: Fields, key: string, value: unknown, schema: Schema | undefined): void {
  if (value === null) {
    delete merged[key];
    return;
  }
  const old = Object.hasOwn(merged, key) ? merged[key] : undefined;
  const field = fieldOf(schema, key);
  if (isRecord(value) && isRecord(old)) {
    merged[key] = field.strategy === 'replace' ? value : mergeMap(old, value, field.schema);
  } else if (Array.isArray(value) && Array.isArray(old)) {
    merged[key] = mergeList(old, value, field);
  } else if (isRecord(value) && Object.hasOwn(value, PATCH)) {
    // A directive for an absent map leaves nothing behind.
    delete merged[key];
  } else {
    merged[key] = removeDirectives(value);
  }
}

/** Applies a `$patch` directive to the map that contains it. */
function replaceMap(patch: Fields): Fields {
  const { [PATCH]: directive, ...rest } = patch;
  if (directive === 'replace') return rest;
  if (directive === 'delete') return {};
  throw unknownDirectiveError(directive, patch);
}

/** Returns a copy of the original with only the keys of `$retainKeys`. */
function retainKeys(original: Fields, patch: Fields): Fields {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return { ...original };
  const names = patch[RETAIN_KEYS];
  const formatError = () => badRequest('invalid patch format of retainKeys');
  if (!Array.isArray(names)) throw formatError();
  const kept = new Set<unknown>(names);
  for (const key of Object.keys(patch)) {
    const isDirective = key === RETAIN_KEYS || key.startsWith(SET_ORDER) || key.startsWith(DELETE_FROM);
    if (patch[key] !== null && !isDirective && !kept.has(key)) throw formatError();
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => kept.has(key)));
}

/** Merges the lists that have a `$setElementOrder` and returns their keys. */
function mergeOrderedLists(merged: Fields, patch: Fields, schema: Schema | undefined): Set<string> | undefined {
  let done: Set<string> | undefined;
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(SET_ORDER)) continue;
    const order = expectList(patch[directive]);
    const key = listName(directive, SET_ORDER, 'invalid patch format of setElementOrder list');
    const field = fieldOf(schema, key);
    const items = Object.hasOwn(patch, key) ? patch[key] : undefined;
    if (key === '__proto__' || items === null) continue;
    const old = Object.hasOwn(merged, key) ? expectList(merged[key] ?? []) : [];
    if (items !== undefined) {
      checkOrder(expectList(items), order, field);
      mergeField(merged, key, items, schema);
    }
    const list = Object.hasOwn(merged, key) ? merged[key] : undefined;
    if (Array.isArray(list) && list.length > 0) {
      const identity = itemIdentity(field, elementKind(list));
      if (identity !== undefined) merged[key] = orderMerged(list, order, old, identity);
    }
    (done ??= new Set()).add(key);
  }
  return done;
}

/** Checks that the patch contains only items of the order, in the same order. */
function checkOrder(items: readonly unknown[], order: readonly unknown[], field: StrategicField): void {
  if (items.length === 0 || order.length === 0) return;
  const identity = itemIdentity(field, elementKind([...items, ...order]));
  if (identity === undefined) return;
  let at = 0;
  for (const item of items) {
    if (isRecord(item) && Object.hasOwn(item, PATCH)) continue;
    while (at < order.length && identity(order[at]) !== identity(item)) at++;
    if (at++ >= order.length) {
      const lists = `${goText(items)}\n doesn't match ${SET_ORDER} list:\n${goText(order)}`;
      throw patchError(`The order in patch list:\n${lists}\n`);
    }
  }
}

/** Merges two lists by the strategy of the field. */
function mergeList(original: readonly unknown[], patch: readonly unknown[], field: StrategicField): readonly unknown[] {
  if (field.strategy !== 'merge') return patch;
  if (original.length === 0 && patch.length === 0) return original;
  const kind = elementKind([...original, ...patch]);
  if (kind === 'scalar') {
    return orderMerged([...new Set([...original, ...patch])], patch, original, (item) => item);
  }
  if (field.mergeKey === '')
    throw patchError(`cannot merge lists without merge key for ${field.schema?.type ?? 'object'}`);
  return mergeMaps(original as Fields[], patch as Fields[], field);
}

function mergeMaps(original: readonly Fields[], patch: readonly Fields[], field: StrategicField): unknown[] {
  const identity = itemIdentity(field, 'map') as (item: unknown) => unknown;
  const deleted = new Set<unknown>();
  const changed: Fields[] = [];
  let replaces = false;
  for (const item of patch) {
    if (!Object.hasOwn(item, PATCH)) {
      identity(item);
      changed.push(item);
    } else if (item[PATCH] === 'delete') deleted.add(identity(item));
    else if (item[PATCH] === 'replace') replaces = true;
    else if (item[PATCH] === 'merge') throw patchError('merging lists cannot yet be specified in the patch');
    else throw unknownDirectiveError(item[PATCH], item);
  }
  if (replaces) return changed.map(removeDirectives);

  const kept = original.filter((item) => !deleted.has(identity(item)));
  const merged: Fields[] = [...kept];
  const positions = new Map<unknown, number>();
  merged.forEach((item, i) => {
    if (!positions.has(identity(item))) positions.set(identity(item), i);
  });
  for (const item of changed) {
    const at = positions.get(identity(item));
    if (at !== undefined) merged[at] = mergeMap(merged[at] as Fields, item, field.schema);
    else {
      positions.set(identity(item), merged.length);
      merged.push(removeDirectives(item) as Fields);
    }
  }
  return orderMerged(merged, changed, kept, identity);
}

function deleteFromList(merged: Fields, directive: string, value: unknown): void {
  const key = listName(directive, DELETE_FROM, 'invalid patch format of primitive list');
  const list = Object.hasOwn(merged, key) ? merged[key] : undefined;
  if (value === null) delete merged[key];
  if (!Array.isArray(list) || !Array.isArray(value) || list.length + value.length === 0) return;
  if (elementKind([...list, ...value]) !== 'scalar') throw badRequest('invalid patch format of primitive list');
  const removed = new Set<unknown>(value);
  merged[key] = list.filter((item) => !removed.has(item));
}

function expectList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw patchError(`expected a []interface {}, but received a ${goType(value)}`);
}

/** Returns the name of the list from `$directive/list`. */
function listName(directive: string, prefix: string, message: string): string {
  if (directive[prefix.length] !== '/') throw badRequest(message);
  return directive.slice(prefix.length + 1);
}

/** Removes null fields and directives from a value that the patch adds. */
function removeDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !(isRecord(item) && Object.hasOwn(item, PATCH))).map(removeDirectives);
  }
  if (!isRecord(value)) return value;
  const result: Fields = {};
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === null || key === '__proto__' || key === RETAIN_KEYS) continue;
    if (key.startsWith(SET_ORDER) || key.startsWith(DELETE_FROM)) continue;
    if (isRecord(item) && Object.hasOwn(item, PATCH)) continue;
    result[key] = removeDirectives(item);
  }
  return result;
}

const unknownDirectiveError = (directive: unknown, map: Fields) =>
  patchError(`unknown patch type: ${goText(directive)} in map: ${goText(map)}`);
