/** Checks the length, pattern and format of strings. Patterns are user-defined, so they run on RE2 in linear time. */
import { RE2JS } from 're2js';
import { formatCheck } from '#engine/registry/structural/formats.ts';
import type { Check } from '#engine/registry/structural/report.ts';
import { tooLong } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';
import { errorMessage } from '#lib/error-message.ts';

export function stringCheck(schema: Schema): Check<string> | undefined {
  const checks = [textCheck(schema), formatOf(schema)].filter((check) => check !== undefined);
  if (checks.length < 2) return checks[0];
  return (value, report) => {
    for (const check of checks) check(value, report);
  };
}

/** Reports only the first of these errors, as in Kubernetes. */
function textCheck({ maxLength, minLength, pattern }: Schema): Check<string> | undefined {
  const match = pattern === undefined || pattern === '' ? undefined : matcher(pattern);
  if (maxLength === undefined && minLength === undefined && match === undefined) return undefined;
  return (value, report) => {
    if (maxLength !== undefined && isLonger(value, maxLength)) {
      report.add(tooLong(report.path(), maxLength));
    } else if (minLength !== undefined && !isLonger(value, minLength - 1)) {
      report.invalid(value, `should be at least ${minLength} chars long`);
    } else if (match !== undefined && !match.test(value)) {
      report.invalid(value, `should match '${match.shown}'`);
    }
  };
}

/** Counts code points only if the number of UTF-16 units is inconclusive. */
function isLonger(value: string, length: number): boolean {
  if (value.length <= length) return false;
  if (value.length > length * 2) return true;
  let points = 0;
  for (const _ of value) points++;
  return points > length;
}

interface Matcher {
  test(value: string): boolean;
  readonly shown: string;
}

/** Definitions with an invalid pattern are rejected; if one exists nevertheless, nothing matches it. */
function matcher(pattern: string): Matcher {
  try {
    const regex = RE2JS.compile(pattern);
    return { test: (value) => regex.test(value), shown: pattern };
  } catch (error) {
    const why = errorMessage(error);
    return { test: () => false, shown: `${pattern}, but pattern is invalid: ${why}` };
  }
}

function formatOf(schema: Schema): Check<string> | undefined {
  if (schema.type !== undefined && schema.type !== 'string') return undefined;
  const { format } = schema;
  const fits = format === undefined ? undefined : formatCheck(format);
  if (format === undefined || fits === undefined) return undefined;
  return (value, report) => {
    if (!fits(value)) report.wrongType(format, value);
  };
}
