/**
 * Sets of field paths and their algebra, like fieldpath.Set of structured-merge-diff. A set is a tree. A key of
 * `children` is a path element in the canonical spelling of FieldsV1 (path-element.ts): `f:spec`, `k:{"name":"a"}`,
 * `v:"x"`, `i:0`.
 *
 * Sets are immutable, and results share unchanged parts with their sources. The root is never a member; every other
 * node is a member or has children.
 */

export interface FieldSet {
  /** True if the path to this node is in the set; never true at the root. */
  readonly member: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;
}

export const NO_FIELDS: FieldSet = { member: false, children: new Map() };

/** A member without children. */
export const LEAF: FieldSet = { member: true, children: NO_FIELDS.children };

/** Returns the set of these paths, each a list of path elements. */
export function fieldSetOf(...paths: (readonly string[])[]): FieldSet {
  return paths.reduce<FieldSet>((set, path) => union(set, singlePath(path, 0)), NO_FIELDS);
}

function singlePath(path: readonly string[], from: number): FieldSet {
  const element = path[from];
  if (element === undefined) return from === 0 ? NO_FIELDS : LEAF;
  return { member: false, children: new Map([[element, singlePath(path, from + 1)]]) };
}

export function isEmpty(set: FieldSet): boolean {
  return !set.member && set.children.size === 0;
}

/** Returns the same node as a member. */
export function asMember(set: FieldSet): FieldSet {
  if (set.member) return set;
  return set.children.size === 0 ? LEAF : { member: true, children: set.children };
}

export function hasSameFields(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (a.member !== b.member || a.children.size !== b.children.size) return false;
  for (const [element, left] of a.children) {
    const right = b.children.get(element);
    if (right === undefined || !hasSameFields(left, right)) return false;
  }
  return true;
}

/** Reports whether every path of `b` is in `a`. */
export function covers(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (b.member && !a.member) return false;
  for (const [element, right] of b.children) {
    const left = a.children.get(element);
    if (left === undefined || !covers(left, right)) return false;
  }
  return true;
}

/** Returns the paths of either set. Returns `a` itself if `b` adds nothing. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a;
  if (isEmpty(a)) return b;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, right] of b.children) {
    const left = a.children.get(element);
    const merged = left === undefined ? right : union(left, right);
    if (merged !== left) (children ??= new Map(a.children)).set(element, merged);
  }
  if (children === undefined && (a.member || !b.member)) return a;
  return { member: a.member || b.member, children: children ?? a.children };
}

/** Returns the paths that are in both sets. */
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
  return makeNode(a.member && b.member, children);
}

/** Returns the paths of `a` that are not in `b`. Keeps paths below a member of `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, false);
}

/** Returns the paths of `a` that are neither in `b` nor below a member of `b`. */
export function differenceWithChildren(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, true);
}

function subtract(a: FieldSet, b: FieldSet, withChildren: boolean): FieldSet {
  if (a === b) return NO_FIELDS;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, right] of b.children) {
    const left = a.children.get(element);
    if (left === undefined) continue;
    const rest = withChildren && right.member ? NO_FIELDS : subtract(left, right, withChildren);
    if (rest === left) continue;
    children ??= new Map(a.children);
    if (isEmpty(rest)) children.delete(element);
    else children.set(element, rest);
  }
  const member = a.member && !b.member;
  if (children === undefined && member === a.member) return a;
  return makeNode(member, children ?? a.children);
}

/** Returns the members that have no members below them. */
export function leavesOf(set: FieldSet): FieldSet {
  if (set.children.size === 0) return set;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) children.set(element, leavesOf(child));
  return { member: false, children };
}

function makeNode(member: boolean, children: ReadonlyMap<string, FieldSet>): FieldSet {
  if (children.size > 0) return { member, children };
  return member ? LEAF : NO_FIELDS;
}
