/** Whether a value has the type that its schema gives it, in structured-merge-diff's words: the first check of an apply. */
import { goSyntax, goText, goType } from '#kube/go-text.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { fieldTypeOf, shapeOf } from './field-type.ts';
import type { FieldType, ListType, MapType, Scalar } from './field-type.ts';
import { itemElement, itemFault } from './list-item.ts';
import { describeElement, fieldElement } from './path-element.ts';

/** Live objects may hold doubles in their sets and map lists; configurations may not. */
export interface TypeCheck {
  readonly allowDuplicates?: boolean;
}

const MAX_FAULTS = 100;

/** `.spec.list: duplicate entries for key [name="a"]` and the like; empty when the value is well typed. Bounded. */
export function typeFaults(value: unknown, schema: Schema, { allowDuplicates = false }: TypeCheck = {}): string[] {
  const checking: Checking = { path: [], faults: [], allowDuplicates };
  check(value, fieldTypeOf(schema), checking);
  return checking.faults;
}

/** Faults as one message. */
export function describeFaults(faults: readonly string[]): string {
  return faults.length === 1 ? faults[0]! : ['errors:', ...faults.map((fault) => `  ${fault}`)].join('\n');
}

interface Checking {
  readonly path: string[];
  readonly faults: string[];
  readonly allowDuplicates: boolean;
}

function fault({ path, faults }: Checking, message: string): void {
  if (faults.length >= MAX_FAULTS) return;
  const place = path.map(describeElement).join('');
  faults.push(place === '' ? message : `${place}: ${message}`);
}

function check(value: unknown, type: FieldType, checking: Checking): void {
  if (value === null) return;
  switch (shapeOf(type, value)) {
    case 'scalar':
      return checkScalar(value, type.scalar!, checking);
    case 'list':
      return checkList(value, type.list!, checking);
    case 'map':
      return checkMap(value, type.map!, checking);
  }
}

function checkScalar(value: unknown, scalar: Scalar, checking: Checking): void {
  switch (scalar) {
    case 'numeric':
      if (typeof value !== 'number') fault(checking, `expected numeric (int or float), got ${goType(value)}`);
      return;
    case 'string':
      if (typeof value !== 'string') {
        fault(checking, `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`);
      }
      return;
    case 'boolean':
      if (typeof value !== 'boolean') fault(checking, `expected boolean, got &{${goText(value)}}`);
      return;
    case 'untyped':
      if (typeof value === 'object') fault(checking, `expected any scalar, got &{${goText(value)}}`);
  }
}

function checkList(value: unknown, list: ListType, checking: Checking): void {
  if (!Array.isArray(value)) return fault(checking, `expected list, got &{${goText(value)}}`);
  const seen = new Set<string>();
  for (const [i, item] of (value as unknown[]).entries()) {
    const element = list.kind === 'atomic' ? `i:${i}` : itemElement(list, item);
    if (element === undefined) return fault(checking, `element ${i}: ${itemFault(list, item)}`);
    if (seen.has(element) && !checking.allowDuplicates) {
      fault(checking, `duplicate entries for key ${describeElement(element)}`);
    }
    seen.add(element);
    checking.path.push(element);
    check(item, list.items, checking);
    checking.path.pop();
  }
}

function checkMap(value: unknown, map: MapType, checking: Checking): void {
  if (!isRecord(value)) return fault(checking, `expected map, got &{${goText(value)}}`);
  for (const name of Object.keys(value)) {
    if (value[name] === undefined) continue;
    const named = map.fields.get(name);
    const type = named?.type ?? map.others;
    checking.path.push(named?.element ?? fieldElement(name));
    if (type === undefined) fault(checking, 'field not declared in schema');
    else check(value[name], type, checking);
    checking.path.pop();
    // As upstream: nothing more is looked at once a field is unknown.
    if (type === undefined) return;
  }
}
