/**
 * Strategic merge patch: JSON merge patch that knows from the schema which lists are sets or maps, and that takes
 * directives: `$patch: replace|delete`, `$retainKeys`, `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>`.
 * Fields that the schema does not know merge plainly: maps by key, lists as a whole.
 *
 * Texts are kube-apiserver's, with Go's words for most faults of a patch; codes, too, but for its bare 500s (see `fault`).
 */
import { badRequest } from '#kube/api-error.ts';
import { goText, goType } from '#kube/go-text.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { elementKind, fault, type Field, fieldOf, identityOf } from '#kube/strategic-field.ts';
import { orderMerged } from '#kube/strategic-list-order.ts';

type Fields = Record<string, unknown>;

const PATCH = '$patch';
const RETAIN_KEYS = '$retainKeys';
const SET_ORDER = '$setElementOrder';
const DELETE_FROM = '$deleteFromPrimitiveList';

/** The merged document; neither input changes, and untouched parts are shared with the result. */
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
    // A directive for a map that is not there leaves nothing behind.
    delete merged[key];
  } else {
    merged[key] = withoutDirectives(value);
  }
}

/** `$patch` in a map acts on that whole map. */
function replaceMap(patch: Fields): Fields {
  const { [PATCH]: directive, ...rest } = patch;
  if (directive === 'replace') return rest;
  if (directive === 'delete') return {};
  throw unknownDirective(directive, patch);
}

/** A copy of the original without the keys that `$retainKeys` does not name. */
function retainKeys(original: Fields, patch: Fields): Fields {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return { ...original };
  const names = patch[RETAIN_KEYS];
  const bad = () => badRequest('invalid patch format of retainKeys');
  if (!Array.isArray(names)) throw bad();
  const kept = new Set<unknown>(names);
  for (const key of Object.keys(patch)) {
    const isDirective = key === RETAIN_KEYS || key.startsWith(SET_ORDER) || key.startsWith(DELETE_FROM);
    if (patch[key] !== null && !isDirective && !kept.has(key)) throw bad();
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => kept.has(key)));
}

/** Lists with a `$setElementOrder` beside them; returns the keys that need no further work. */
function mergeOrderedLists(merged: Fields, patch: Fields, schema: Schema | undefined): Set<string> | undefined {
  let done: Set<string> | undefined;
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(SET_ORDER)) continue;
    const order = listArgument(patch[directive]);
    const key = listNamed(directive, SET_ORDER, 'invalid patch format of setElementOrder list');
    const field = fieldOf(schema, key);
    const items = Object.hasOwn(patch, key) ? patch[key] : undefined;
    if (key === '__proto__' || items === null) continue;
    const old = Object.hasOwn(merged, key) ? listArgument(merged[key] ?? []) : [];
    if (items !== undefined) {
      checkOrder(listArgument(items), order, field);
      mergeField(merged, key, items, schema);
    }
    const list = Object.hasOwn(merged, key) ? merged[key] : undefined;
    if (Array.isArray(list) && list.length > 0) {
      const identity = identityOf(field, elementKind(list));
      if (identity !== undefined) merged[key] = orderMerged(list, order, old, identity);
    }
    (done ??= new Set()).add(key);
  }
  return done;
}

/** The patch may only name items that the order names, and in the same order. */
function checkOrder(items: readonly unknown[], order: readonly unknown[], field: Field): void {
  if (items.length === 0 || order.length === 0) return;
  const identity = identityOf(field, elementKind([...items, ...order]));
  if (identity === undefined) return;
  let at = 0;
  for (const item of items) {
    if (isRecord(item) && Object.hasOwn(item, PATCH)) continue;
    while (at < order.length && identity(order[at]) !== identity(item)) at++;
    if (at++ >= order.length) {
      const lists = `${goText(items)}\n doesn't match ${SET_ORDER} list:\n${goText(order)}`;
      throw fault(`The order in patch list:\n${lists}\n`);
    }
  }
}

/** Joins two lists as the field's strategy says. */
function mergeList(original: readonly unknown[], patch: readonly unknown[], field: Field): readonly unknown[] {
  if (field.strategy !== 'merge') return patch;
  if (original.length === 0 && patch.length === 0) return original;
  const kind = elementKind([...original, ...patch]);
  if (kind === 'scalar') {
    return orderMerged([...new Set([...original, ...patch])], patch, original, (item) => item);
  }
  if (field.mergeKey === '') throw fault(`cannot merge lists without merge key for ${field.schema?.type ?? 'object'}`);
  return mergeMaps(original as Fields[], patch as Fields[], field);
}

function mergeMaps(original: readonly Fields[], patch: readonly Fields[], field: Field): unknown[] {
  const identity = identityOf(field, 'map') as (item: unknown) => unknown;
  const deleted = new Set<unknown>();
  const wanted: Fields[] = [];
  let replaces = false;
  for (const item of patch) {
    if (!Object.hasOwn(item, PATCH)) {
      identity(item);
      wanted.push(item);
    } else if (item[PATCH] === 'delete') deleted.add(identity(item));
    else if (item[PATCH] === 'replace') replaces = true;
    else if (item[PATCH] === 'merge') throw fault('merging lists cannot yet be specified in the patch');
    else throw unknownDirective(item[PATCH], item);
  }
  if (replaces) return wanted.map(withoutDirectives);

  const kept = original.filter((item) => !deleted.has(identity(item)));
  const merged: Fields[] = [...kept];
  const places = new Map<unknown, number>();
  merged.forEach((item, i) => {
    if (!places.has(identity(item))) places.set(identity(item), i);
  });
  for (const item of wanted) {
    const at = places.get(identity(item));
    if (at !== undefined) merged[at] = mergeMap(merged[at] as Fields, item, field.schema);
    else {
      places.set(identity(item), merged.length);
      merged.push(withoutDirectives(item) as Fields);
    }
  }
  return orderMerged(merged, wanted, kept, identity);
}

function deleteFromList(merged: Fields, directive: string, value: unknown): void {
  const key = listNamed(directive, DELETE_FROM, 'invalid patch format of primitive list');
  const list = Object.hasOwn(merged, key) ? merged[key] : undefined;
  if (value === null) delete merged[key];
  if (!Array.isArray(list) || !Array.isArray(value) || list.length + value.length === 0) return;
  if (elementKind([...list, ...value]) !== 'scalar') throw badRequest('invalid patch format of primitive list');
  const removed = new Set<unknown>(value);
  merged[key] = list.filter((item) => !removed.has(item));
}

function listArgument(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw fault(`expected a []interface {}, but received a ${goType(value)}`);
}

/** The list that `$directive/list` speaks of. */
function listNamed(directive: string, prefix: string, otherwise: string): string {
  if (directive[prefix.length] !== '/') throw badRequest(otherwise);
  return directive.slice(prefix.length + 1);
}

/** What a patch adds anew: no null fields, and nothing that was meant for the merge. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !(isRecord(item) && Object.hasOwn(item, PATCH))).map(withoutDirectives);
  }
  if (!isRecord(value)) return value;
  const result: Fields = {};
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === null || key === '__proto__' || key === RETAIN_KEYS) continue;
    if (key.startsWith(SET_ORDER) || key.startsWith(DELETE_FROM)) continue;
    if (isRecord(item) && Object.hasOwn(item, PATCH)) continue;
    result[key] = withoutDirectives(item);
  }
  return result;
}

const unknownDirective = (directive: unknown, map: Fields) =>
  fault(`unknown patch type: ${goText(directive)} in map: ${goText(map)}`);
