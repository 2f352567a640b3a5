/** Checks items, their number, and the uniqueness of lists of type set and map. */
import { canonicalJson } from '#engine/registry/structural/json-value.ts';
import type { Check, CompileNode, ValidationReport } from '#engine/registry/structural/report.ts';
import { duplicateValue, invalidValue, tooMany } from '#kube/field-error.ts';
import { goSyntax } from '#kube/go/go-text.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

interface ArrayOptions {
  readonly uniqueLists: boolean;
  readonly compile: CompileNode;
}

export function arrayCheck(schema: Schema, { uniqueLists, compile }: ArrayOptions): Check<unknown[]> | undefined {
  const checkItem = schema.items === undefined ? undefined : compile(schema.items);
  const checkCount = countCheck(schema);
  const checkUnique = uniqueLists ? uniqueCheck(schema) : undefined;
  if (checkItem === undefined && checkCount === undefined && checkUnique === undefined) return undefined;
  return (list, report) => {
    if (checkItem !== undefined) {
      for (let i = 0; i < list.length; i++) {
        report.enter(i);
        checkItem(list[i], report);
        report.leave();
      }
    }
    checkCount?.(list, report);
    if (checkUnique !== undefined && list.length > 0) checkUnique(list, report);
  };
}

function countCheck({ minItems, maxItems, uniqueItems }: Schema): Check<unknown[]> | undefined {
  if (minItems === undefined && maxItems === undefined && uniqueItems !== true) return undefined;
  return (list, report) => {
    const { length } = list;
    if (minItems !== undefined && length < minItems) {
      report.invalid(length, `should have at least ${minItems} items`);
    }
    if (maxItems !== undefined && length > maxItems) report.add(tooMany(report.path(), length, maxItems));
    if (uniqueItems === true && findRepeated(list).length > 0) report.invalid('', "shouldn't contain duplicates");
  };
}

function uniqueCheck(schema: Schema): Check<unknown[]> | undefined {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return (list, report) => {
        for (const index of findRepeated(list)) duplicate(report, index, list[index]);
      };
    case 'map':
      return mapListCheck(schema['x-kubernetes-list-map-keys'] ?? []);
    default:
      return undefined;
  }
}

function mapListCheck(names: readonly string[]): Check<unknown[]> {
  const [name = ''] = names;
  // A single key, the usual case, is compared directly.
  const keyOfItem =
    names.length === 1 ? (item: unknown) => ownField(item, name) : (item: unknown) => keyOf(item, names);
  return (list, report) => {
    const otherTypeIndex = list.findIndex((item) => item !== null && !isRecord(item));
    if (otherTypeIndex >= 0) {
      const detail = 'must be an object for an array of list-type map';
      report.addOfList(invalidValue(`${report.path()}[${otherTypeIndex}]`, list[otherTypeIndex], detail));
      return;
    }
    if (list.length < 2) return;
    for (const index of findRepeated(list.map(keyOfItem))) duplicate(report, index, keyOf(list[index], names));
  };
}

function ownField(item: unknown, name: string): unknown {
  return isRecord(item) && Object.hasOwn(item, name) ? item[name] : undefined;
}

function keyOf(item: unknown, names: readonly string[]): Record<string, unknown> {
  const key: Record<string, unknown> = {};
  for (const name of names) {
    if (isRecord(item) && Object.hasOwn(item, name)) key[name] = item[name];
  }
  return key;
}

/** Maps and lists are printed in Go syntax. */
function duplicate(report: ValidationReport, index: number, value: unknown): void {
  const field = `${report.path()}[${index}]`;
  if (isScalar(value)) report.addOfList(duplicateValue(field, value));
  else report.addOfList({ reason: 'FieldValueDuplicate', field, message: `Duplicate value: ${goSyntax(value)}` });
}

/** Returns the indexes where a value occurs for the second time; further repetitions are not reported. */
function findRepeated(list: readonly unknown[]): number[] {
  if (list.length < 2) return [];
  if (list.every(isScalar) && new Set(list).size === list.length) return [];
  const times = new Map<string, number>();
  const indices: number[] = [];
  for (const [index, item] of list.entries()) {
    const key = canonicalJson(item);
    const seen = times.get(key) ?? 0;
    times.set(key, seen + 1);
    if (seen === 1) indices.push(index);
  }
  return indices;
}

const isScalar = (value: unknown) => typeof value !== 'object' || value === null;
