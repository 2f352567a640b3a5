/**
 * The first check of an apply: whether a value has the types of its schema. Messages are those of
 * structured-merge-diff.
 */
import { goSyntax, goText, goType } from '#kube/go/go-text.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { fieldTypeOf, shapeOf } from './field-type.ts';
import type { FieldType, FieldListType, FieldMapType, ScalarType } from './field-type.ts';
import { itemElement, findItemError } from './list-item.ts';
import { describeElement, fieldElement } from './path-element.ts';

/** Live objects may have duplicates in their sets and map lists; configurations may not. */
interface TypeCheck {
  readonly allowDuplicates?: boolean;
}

const MAX_ERRORS = 100;

/**
 * Returns messages like `.spec.list: duplicate entries for key [name="a"]`; none if the value is well typed. Bounded.
 */
export function checkFieldTypes(value: unknown, schema: Schema, { allowDuplicates = false }: TypeCheck = {}): string[] {
  const state: CheckState = { path: [], errors: [], allowDuplicates };
  check(value, fieldTypeOf(schema), state);
  return state.errors;
}

/** Combines errors into one message. */
export function describeTypeErrors(errors: readonly string[]): string {
  return errors.length === 1 ? errors[0]! : ['errors:', ...errors.map((error) => `  ${error}`)].join('\n');
}

interface CheckState {
  readonly path: string[];
  readonly errors: string[];
  readonly allowDuplicates: boolean;
}

function addError({ path, errors }: CheckState, message: string): void {
  if (errors.length >= MAX_ERRORS) return;
  const location = path.map(describeElement).join('');
  errors.push(location === '' ? message : `${location}: ${message}`);
}

function check(value: unknown, type: FieldType, state: CheckState): void {
  if (value === null) return;
  switch (shapeOf(type, value)) {
    case 'scalar':
      return checkScalar(value, type.scalar!, state);
    case 'list':
      return checkList(value, type.list!, state);
    case 'map':
      return checkMap(value, type.map!, state);
  }
}

function checkScalar(value: unknown, scalar: ScalarType, state: CheckState): void {
  switch (scalar) {
    case 'numeric':
      if (typeof value !== 'number') addError(state, `expected numeric (int or float), got ${goType(value)}`);
      return;
    case 'string':
      if (typeof value !== 'string') {
        addError(state, `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`);
      }
      return;
    case 'boolean':
      if (typeof value !== 'boolean') addError(state, `expected boolean, got &{${goText(value)}}`);
      return;
    case 'untyped':
      if (typeof value === 'object') addError(state, `expected any scalar, got &{${goText(value)}}`);
  }
}

function checkList(value: unknown, list: FieldListType, state: CheckState): void {
  if (!Array.isArray(value)) return addError(state, `expected list, got &{${goText(value)}}`);
  const seen = new Set<string>();
  for (const [i, item] of (value as unknown[]).entries()) {
    const element = list.kind === 'atomic' ? `i:${i}` : itemElement(list, item);
    if (element === undefined) return addError(state, `element ${i}: ${findItemError(list, item)}`);
    if (seen.has(element) && !state.allowDuplicates) {
      addError(state, `duplicate entries for key ${describeElement(element)}`);
    }
    seen.add(element);
    state.path.push(element);
    check(item, list.items, state);
    state.path.pop();
  }
}

function checkMap(value: unknown, map: FieldMapType, state: CheckState): void {
  if (!isRecord(value)) return addError(state, `expected map, got &{${goText(value)}}`);
  for (const name of Object.keys(value)) {
    if (value[name] === undefined) continue;
    const named = map.fields.get(name);
    const type = named?.type ?? map.others;
    state.path.push(named?.element ?? fieldElement(name));
    if (type === undefined) addError(state, 'field not declared in schema');
    else check(value[name], type, state);
    state.path.pop();
    // As upstream, the remaining fields are not checked after an unknown one.
    if (type === undefined) return;
  }
}
