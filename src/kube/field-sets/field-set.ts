/**
 * Sets of field paths and the algebra on them: structured-merge-diff's fieldpath.Set. A set is a tree; a key of
 * `children` is a path element just as FieldsV1 writes it, in canonical spelling (path-element.ts): `f:spec`,
 * `k:{"name":"a"}`, `v:"x"`, `i:0`.
 *
 * Sets are values: nothing here changes one, and results share what did not change with their sources. But for the root,
 * which nobody owns, no node is both no member and without children.
 */

export interface FieldSet {
  /** Whether the path that leads here is in the set; never so at the root. */
  readonly member: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;
}

export const NO_FIELDS: FieldSet = { member: false, children: new Map() };

/** A path that is in the set, with none below it. */
export const LEAF: FieldSet = { member: true, children: NO_FIELDS.children };

/** A set of these paths, each a list of path elements. */
export function fieldSetOf(...paths: (readonly string[])[]): FieldSet {
  return paths.reduce<FieldSet>((set, path) => union(set, onlyPath(path, 0)), NO_FIELDS);
}

function onlyPath(path: readonly string[], from: number): FieldSet {
  const element = path[from];
  if (element === undefined) return from === 0 ? NO_FIELDS : LEAF;
  return { member: false, children: new Map([[element, onlyPath(path, from + 1)]]) };
}

export function isEmpty(set: FieldSet): boolean {
  return !set.member && set.children.size === 0;
}

/** The same node as a member. */
export function asMember(set: FieldSet): FieldSet {
  if (set.member) return set;
  return set.children.size === 0 ? LEAF : { member: true, children: set.children };
}

export function hasPath(set: FieldSet, path: readonly string[]): boolean {
  let node: FieldSet | undefined = set;
  for (const element of path) {
    node = node.children.get(element);
    if (node === undefined) return false;
  }
  return path.length > 0 && node.member;
}

export function sameFields(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (a.member !== b.member || a.children.size !== b.children.size) return false;
  for (const [element, left] of a.children) {
    const right = b.children.get(element);
    if (right === undefined || !sameFields(left, right)) return false;
  }
  return true;
}

/** Whether every path of `b` is in `a`. */
export function covers(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (b.member && !a.member) return false;
  for (const [element, right] of b.children) {
    const left = a.children.get(element);
    if (left === undefined || !covers(left, right)) return false;
  }
  return true;
}

/** Paths of either. It is `a` itself when `b` adds nothing. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a;
  if (isEmpty(a)) return b;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, right] of b.children) {
    const left = a.children.get(element);
    const joined = left === undefined ? right : union(left, right);
    if (joined !== left) (children ??= new Map(a.children)).set(element, joined);
  }
  if (children === undefined && (a.member || !b.member)) return a;
  return { member: a.member || b.member, children: children ?? a.children };
}

/** Paths of both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const children = new Map<string, FieldSet>();
  const [small, large] = a.children.size <= b.children.size ? [a, b] : [b, a];
  for (const [element, left] of small.children) {
    const right = large.children.get(element);
    if (right === undefined) continue;
    const both = intersection(left, right);
    if (!isEmpty(both)) children.set(element, both);
  }
  return made(a.member && b.member, children);
}

/** Paths of `a` that are not in `b`; what lies below a member of `b` stays. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return without(a, b, false);
}

/** Paths of `a` that are neither in `b` nor below a member of `b`. */
export function differenceWithChildren(a: FieldSet, b: FieldSet): FieldSet {
  return without(a, b, true);
}

function without(a: FieldSet, b: FieldSet, withChildren: boolean): FieldSet {
  if (a === b) return NO_FIELDS;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, right] of b.children) {
    const left = a.children.get(element);
    if (left === undefined) continue;
    const rest = withChildren && right.member ? NO_FIELDS : without(left, right, withChildren);
    if (rest === left) continue;
    children ??= new Map(a.children);
    if (isEmpty(rest)) children.delete(element);
    else children.set(element, rest);
  }
  const member = a.member && !b.member;
  if (children === undefined && member === a.member) return a;
  return made(member, children ?? a.children);
}

/** The members that have none below them. */
export function leavesOf(set: FieldSet): FieldSet {
  if (set.children.size === 0) return set;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) children.set(element, leavesOf(child));
  return { member: false, children };
}

function made(member: boolean, children: ReadonlyMap<string, FieldSet>): FieldSet {
  if (children.size > 0) return { member, children };
  return member ? LEAF : NO_FIELDS;
}
