/** Checks fields, their number, required fields, and embedded resources. */
import { embeddedCheck } from '#engine/registry/structural/embedded-check.ts';
import { propertiesOf, valueSchema } from '#engine/registry/structural/keywords.ts';
import type { Check, CompileNode, ValidationReport } from '#engine/registry/structural/report.ts';
import { invalidValue, requiredValue, tooMany } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

type Fields = Record<string, unknown>;

export function objectCheck(schema: Schema, compile: CompileNode): Check<Fields> | undefined {
  const checkFields = fieldsCheck(schema, compile);
  const checkCount = countCheck(schema);
  const checkRequired = requiredCheck(schema.required ?? []);
  const checkResource = schema['x-kubernetes-embedded-resource'] === true ? embeddedCheck : undefined;
  const checks = [checkCount, checkFields, checkRequired, checkResource].filter((check) => check !== undefined);
  if (checks.length < 2) return checks[0];
  return (object, report) => {
    for (const check of checks) check(object, report);
  };
}

function fieldsCheck(schema: Schema, compile: CompileNode): Check<Fields> | undefined {
  const known = propertiesOf(schema, compile);
  const values = valueSchema(schema);
  const others = values === undefined ? undefined : compile(values);
  const closed = schema.additionalProperties === false;
  if (known.size === 0 && others === undefined && !closed) return undefined;
  return (object, report) => {
    for (const key in object) {
      const check = known.get(key) ?? others;
      if (check === undefined) {
        if (closed) report.add(forbiddenProperty(report, key));
        continue;
      }
      report.enter(key);
      check(object[key], report);
      report.leave();
    }
  };
}

const forbiddenProperty = (report: ValidationReport, key: string) =>
  invalidValue(report.path(), key, `${below(report, key)} in body is a forbidden property`);

function countCheck({ minProperties, maxProperties }: Schema): Check<Fields> | undefined {
  if (minProperties === undefined && maxProperties === undefined) return undefined;
  return (object, report) => {
    const count = Object.keys(object).length;
    if (minProperties !== undefined && count < minProperties) {
      report.invalid(count, `should have at least ${minProperties} properties`);
    }
    if (maxProperties !== undefined && count > maxProperties) report.add(tooMany(report.path(), count, maxProperties));
  };
}

function requiredCheck(required: readonly string[]): Check<Fields> | undefined {
  if (required.length === 0) return undefined;
  return (object, report) => {
    for (const name of required) {
      if (!Object.hasOwn(object, name)) report.add(requiredValue(below(report, name)));
    }
  };
}

const below = (report: ValidationReport, name: string) => {
  const path = report.path();
  return path === '' ? name : `${path}.${name}`;
};
