/**
 * Checks anyOf, oneOf, allOf and not. If no alternative matches, the errors of the one that got furthest are reported.
 */
import type { Check, CompileNode, ValidationReport } from '#engine/registry/structural/report.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

export function alternativesCheck(schema: Schema, compile: CompileNode): Check | undefined {
  const checks = [
    anyOfCheck((schema.anyOf ?? []).map(compile)),
    oneOfCheck((schema.oneOf ?? []).map(compile)),
    allOfCheck((schema.allOf ?? []).map(compile)),
    schema.not === undefined ? undefined : notCheck(compile(schema.not)),
  ].filter((check) => check !== undefined);
  if (checks.length < 2) return checks[0];
  return (value, report) => {
    for (const check of checks) check(value, report);
  };
}

const quotedPath = (report: ValidationReport) => JSON.stringify(report.path());

interface AlternativeResult {
  readonly errors: FieldError[];
  readonly passed: number;
}

const furthest = (outcomes: readonly AlternativeResult[]) =>
  outcomes.reduce((best, outcome) => (outcome.passed > best.passed ? outcome : best)).errors;

function anyOfCheck(alternatives: readonly Check[]): Check | undefined {
  if (alternatives.length === 0) return undefined;
  return (value, report) => {
    const failures: AlternativeResult[] = [];
    for (const check of alternatives) {
      const outcome = report.runSeparately(() => check(value, report));
      if (outcome.errors.length === 0) return;
      failures.push(outcome);
    }
    report.general(`${quotedPath(report)} must validate at least one schema (anyOf)`);
    report.addAll(furthest(failures));
  };
}

function oneOfCheck(alternatives: readonly Check[]): Check | undefined {
  if (alternatives.length === 0) return undefined;
  return (value, report) => {
    const outcomes = alternatives.map((check) => report.runSeparately(() => check(value, report)));
    const valid = outcomes.filter(({ errors }) => errors.length === 0).length;
    if (valid === 1) return;
    const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
    report.general(`${quotedPath(report)} must validate one and only one schema (oneOf). ${found}`);
    if (valid === 0) report.addAll(furthest(outcomes));
  };
}

function allOfCheck(parts: readonly Check[]): Check | undefined {
  if (parts.length === 0) return undefined;
  return (value, report) => {
    const outcomes = parts.map((check) => report.runSeparately(() => check(value, report)));
    const failures = outcomes.filter(({ errors }) => errors.length > 0);
    if (failures.length === 0) return;
    for (const { errors } of failures) report.addAll(errors);
    const none = failures.length === parts.length ? '. None validated' : '';
    report.general(`${quotedPath(report)} must validate all the schemas (allOf)${none}`);
  };
}

function notCheck(check: Check): Check {
  return (value, report) => {
    const { errors } = report.runSeparately(() => check(value, report));
    if (errors.length === 0) report.general(`${quotedPath(report)} must not validate the schema (not)`);
  };
}
