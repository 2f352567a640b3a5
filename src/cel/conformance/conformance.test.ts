/**
 * Runs the conformance tests of the CEL specification (npm @bufbuild/cel-spec) for the sections that Kubernetes uses.
 *
 * Kubernetes has no protobuf messages, enums or containers. Cases that need one are excluded by their content, not by
 * their name (spec-case.ts). The counts are printed per section.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tests as suite } from '@bufbuild/cel-spec/testdata/conformance.js';
import type { SerializedIncrementalTestSuite } from '@bufbuild/cel-spec/testdata/tests.js';
import { Budget } from '#cel/limits/budget.ts';
import { compile } from '#cel/compile.ts';
import type { Activation } from '#cel/environment.ts';
import { findExclusionReason, readSpecValue } from '#cel/conformance/testing/spec-case.ts';
import type { SpecCase } from '#cel/conformance/testing/spec-case.ts';
import { createEnvironment } from '#cel/environment.ts';
import { areEqual } from '#cel/evaluate/equal.ts';
import { plan } from '#cel/evaluate/plan/plan.ts';
import { toJson } from '#cel/evaluate/to-json.ts';
import { typeOfValue } from '#cel/evaluate/type-of.ts';
import { bindLibrary } from '#cel/extensions/testing/bind-macro.ts';
import { stringsLibrary } from '#cel/extensions/strings.ts';
import { stringsReverseLibrary } from '#cel/extensions/testing/strings-reverse.ts';
import { plainFormatLibrary } from '#cel/extensions/testing/format-plain.ts';
import { twoVariableLibrary } from '#cel/extensions/two-variable-macros.ts';
import type { Library } from '#cel/library.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';
import { DYN } from '#cel/type.ts';
import { CelFault } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const core: readonly Library[] = [standardLibrary, optionalLibrary];
/** The libraries that a section tests, in addition to the core. */
const sections: Readonly<Record<string, readonly Library[]>> = {
  basic: [],
  bindings_ext: [bindLibrary],
  comparisons: [],
  conversions: [],
  fields: [],
  fp_math: [],
  integer_math: [],
  lists: [],
  logic: [],
  macros: [],
  macros2: [twoVariableLibrary],
  namespace: [],
  optionals: [],
  parse: [],
  plumbing: [],
  string: [],
  // The specification has the newer `format`; the first matching overload is called.
  string_ext: [plainFormatLibrary, stringsLibrary, stringsReverseLibrary],
  timestamps: [],
};

/** Intended deviations with their reasons. cel-go's own run excludes the same cases. */
const deviations: Readonly<Record<string, string>> = {
  'string_ext/indexof_out_of_range': 'cel-go gives -1 there, so Kubernetes does',
  'string_ext/lastindexof_out_of_range': 'cel-go gives -1 there, so Kubernetes does',
  'timestamps/get_milliseconds': 'cel-go gives the whole duration in milliseconds, so Kubernetes does',
};

function casesOf(section: SerializedIncrementalTestSuite): SpecCase[] {
  const own = (section.tests ?? []).map(({ original }) => original as unknown as SpecCase);
  return [...own, ...(section.suites ?? []).flatMap(casesOf)];
}

function evaluate(spec: SpecCase, libraries: readonly Library[]): CelValue | CelFault {
  const variables = (spec.typeEnv ?? []).map(({ name }): [string, typeof DYN] => [name, DYN]);
  const environment = createEnvironment([...core, ...libraries], Object.fromEntries(variables));
  const bindings = new Map(
    Object.entries(spec.bindings ?? {}).map(([name, { value }]) => [name, readSpecValue(value)]),
  );
  const budget = new Budget(1_000_000);
  const activation: Activation = (name) => bindings.get(name);
  // An expected fault must come from the evaluation, but the checker rejects some of these expressions earlier.
  if (spec.disableCheck !== true && spec.disableMacros !== true && spec.evalError === undefined) {
    const program = compile(spec.expr, environment, { mixedLiterals: true });
    return 'failure' in program ? new CelFault(program.failure) : program.evaluate(activation, budget);
  }
  try {
    const tree = parse(spec.expr, spec.disableMacros === true ? [] : environment.macros);
    return plan(tree, environment)(activation, budget);
  } catch (error) {
    if (error instanceof CelSyntaxError) return new CelFault(error.message);
    throw error;
  }
}

/** Returns the problem, or undefined if the case passes. */
function findProblem(spec: SpecCase, libraries: readonly Library[]): string | undefined {
  const got = evaluate(spec, libraries);
  if (spec.evalError !== undefined) {
    return got instanceof CelFault ? undefined : `gives ${shown(got)}, expected a fault`;
  }
  if (got instanceof CelFault) return `fault: ${got.message}`;
  const want = readSpecValue(spec.value ?? spec.typedResult?.result ?? { boolValue: true });
  const same = typeOfValue(got).name === typeOfValue(want).name && areEqual(got, want, new Budget(1_000_000));
  return same || (Number.isNaN(got) && Number.isNaN(want)) ? undefined : `gives ${shown(got)}, expected ${shown(want)}`;
}

function partition<T>(values: readonly T[], holds: (value: T) => boolean): [T[], T[]] {
  return [values.filter(holds), values.filter((value) => !holds(value))];
}

function shown(value: CelValue): string {
  return `${typeOfValue(value).name} ${JSON.stringify(toJson(value))}`;
}

for (const [name, libraries] of Object.entries(sections)) {
  test(`cel-spec ${name}`, (t) => {
    const section = suite.suites?.find((known) => known.name === name);
    assert.ok(section !== undefined, `@bufbuild/cel-spec has no section ${name}`);
    const all = casesOf(section);
    const ours = all.filter((spec) => findExclusionReason(spec) === undefined);
    const [deviating, expected] = partition(ours, (spec) => deviations[`${name}/${spec.name}`] !== undefined);
    const failed = expected.flatMap((spec) => {
      const problem = findProblem(spec, libraries);
      return problem === undefined ? [] : [`${spec.name}: ${spec.expr}: ${problem}`];
    });
    for (const spec of deviating) {
      assert.notEqual(findProblem(spec, libraries), undefined, `${spec.name} passes; remove it from deviations`);
    }
    const passed = expected.length - failed.length;
    const aside = `${all.length - ours.length} need features that Kubernetes does not have, ${deviating.length} deviate by intent`;
    t.diagnostic(`cel-spec ${name}: ${passed} of ${expected.length} (${aside})`);
    assert.equal(failed.join('\n'), '');
  });
}
