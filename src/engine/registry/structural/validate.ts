/**
 * Compiles a schema to a function that reports every error with kube-apiserver's messages. A node checks the type of
 * the value and runs only the checks for that type; as in Kubernetes, a value of the wrong type is still checked
 * against the other rules.
 */
import { alternativesCheck } from '#engine/registry/structural/alternatives.ts';
import { arrayCheck } from '#engine/registry/structural/array-check.ts';
import { supportedFormat } from '#engine/registry/structural/formats.ts';
import { Correlation } from '#engine/registry/structural/correlation.ts';
import { isInteger, jsonTypeOf, canonicalJson } from '#engine/registry/structural/json-value.ts';
import { typesOf } from '#engine/registry/structural/keywords.ts';
import { LenientReport } from '#engine/registry/structural/lenient-report.ts';
import { numberCheck } from '#engine/registry/structural/number-check.ts';
import { objectCheck } from '#engine/registry/structural/object-check.ts';
import { type Check, type CompileNode, ValidationReport } from '#engine/registry/structural/report.ts';
import { stringCheck } from '#engine/registry/structural/string-check.ts';
import { type FieldError, unsupportedValue } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

interface ValidateOptions {
  /** True if lists of type set and map must not contain duplicates. */
  readonly uniqueLists: boolean;
}

export interface Validator {
  validate(value: unknown): FieldError[];
  /** Ignores errors in unchanged values. */
  validateUpdate(value: unknown, old: unknown): FieldError[];
}

export function compileValidator(schema: Schema, options: ValidateOptions): Validator {
  const compileNode: CompileNode = (inner) => nodeCheck(inner, options, compileNode);
  const check = nodeCheck({ ...schema, 'x-kubernetes-embedded-resource': false }, options, compileNode);
  const run = <R extends ValidationReport>(value: unknown, report: R): R => {
    check(value, report);
    return report;
  };
  return {
    validate: (value) => run(value, new ValidationReport()).result(),
    validateUpdate(value, old) {
      const plain = run(value, new ValidationReport());
      if (!plain.failed) return [];
      // Old values are examined only if there are errors.
      const lenient = run(value, new LenientReport(new Correlation(value, old, schema)));
      const found = lenient.result();
      if (!found.some((error) => lenient.isOfList(error))) return found;
      const before = run(old, new ValidationReport());
      const hadOnes = before.result().some((error) => before.isOfList(error));
      return hadOnes ? found.filter((error) => !lenient.isOfList(error)) : found;
    },
  };
}

function nodeCheck(schema: Schema, { uniqueLists }: ValidateOptions, compile: CompileNode): Check {
  const types = typesOf(schema);
  const accepts = (type: string) => types.length === 0 || types.includes(type);
  const acceptsString = accepts('string');
  const acceptsInteger = accepts('integer') || accepts('number');
  const acceptsNumber = accepts('number');
  const acceptsBoolean = accepts('boolean');
  const acceptsArray = accepts('array');
  const acceptsObject = accepts('object');
  const takesNull = types.length === 0 || schema.nullable === true;

  const mismatch = mismatchCheck(types, supportedFormat(schema));
  const onString = stringCheck(schema);
  const onNumber = numberCheck(schema);
  const onArray = arrayCheck(schema, { uniqueLists, compile });
  const onObject = objectCheck(schema, compile);
  const onAny = both(alternativesCheck(schema, compile), enumCheck(schema));
  const onNull = enumCheck(schema);

  return (value, report) => {
    report.passed++;
    switch (typeof value) {
      case 'string':
        if (!acceptsString) mismatch(value, report);
        onString?.(value, report);
        break;
      case 'number':
        if (!acceptsNumber && !(acceptsInteger && isInteger(value))) mismatch(value, report);
        onNumber?.(value, report);
        break;
      case 'boolean':
        if (!acceptsBoolean) mismatch(value, report);
        break;
      default:
        if (value === null || value === undefined) {
          if (!takesNull) mismatch(value, report);
          onNull?.(value, report);
          return;
        }
        if (Array.isArray(value)) {
          if (!acceptsArray) mismatch(value, report);
          onArray?.(value, report);
        } else {
          if (!acceptsObject) mismatch(value, report);
          onObject?.(value as Record<string, unknown>, report);
        }
    }
    onAny?.(value, report);
  };
}

/** kube-apiserver reports the format if there is one, and then the Go type of the value. */
function mismatchCheck(types: readonly string[], format: string | undefined): Check {
  const wanted = types.join(',');
  return (value, report) => {
    const got = jsonTypeOf(value);
    if (format === undefined || got === 'string' || got === 'array' || got === 'null') report.wrongType(wanted, got);
    else report.wrongType(format, got === 'integer' ? 'int64' : got === 'number' ? 'float64' : '');
  };
}

function both(first: Check | undefined, second: Check | undefined): Check | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return (value, report) => {
    first(value, report);
    second(value, report);
  };
}

/** Compiles the check of an enum. */
function enumCheck(schema: Schema): Check | undefined {
  if (schema.enum === undefined || schema.enum.length === 0) return undefined;
  const scalars = new Set<unknown>();
  const composites = new Set<string>();
  for (const value of schema.enum) {
    if (typeof value === 'object' && value !== null) composites.add(canonicalJson(value));
    else scalars.add(value);
  }
  const supported = schema.enum.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  return (value, report) => {
    if (scalars.has(value)) return;
    if (composites.size > 0 && composites.has(canonicalJson(value))) return;
    // kube-apiserver prints null as a quoted string.
    report.add(unsupportedValue(report.path(), value ?? 'null', supported));
  };
}
