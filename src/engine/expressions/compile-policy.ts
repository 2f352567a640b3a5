/** Compiles the expressions of a policy, when it is written, to reject errors, and when it takes effect. */
import type { CheckBudget } from '#cel/limits/check-budget.ts';
import { compile, type CompileFailure, type Program } from '#cel/compile.ts';
import type { Environment } from '#cel/environment.ts';
import { BOOL, DYN, NULL, STRING, type CelType } from '#cel/type.ts';
import { expressionEnvironment, objectType } from '#engine/expressions/expression-environment.ts';
import { createCheckBudget, checkSourceLimits } from '#cel/limits/source-limits.ts';
import { precompute } from '#engine/expressions/constant-variable.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

export interface ParamKind {
  readonly apiVersion?: string;
  readonly kind?: string;
}

interface Validation {
  readonly expression: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
}

/** The expressions of the spec of a policy, and the kind of its parameters. */
export interface PolicyExpressions {
  readonly paramKind?: ParamKind;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly validations?: readonly Validation[];
  readonly auditAnnotations?: readonly { readonly key: string; readonly valueExpression: string }[];
}

export interface CompiledValidation {
  readonly validation: Validation;
  readonly program: Program;
  readonly message: Program | undefined;
}

export interface CompiledPolicy {
  readonly conditions: readonly { readonly name: string; readonly program: Program }[];
  readonly variables: ReadonlyMap<string, Program>;
  readonly validations: readonly CompiledValidation[];
  readonly annotations: readonly { readonly key: string; readonly program: Program }[];
}

interface PolicyCompileOptions {
  /** Types of the objects if schemas are known, for type checking. */
  readonly object?: CelType;
  readonly params?: CelType;
  /** Budget for type checking; defaults to that of one policy. */
  readonly checkBudget?: CheckBudget;
}

/** The field for errors about all expressions together. */
const WHOLE = 'spec';

const NOTHING: CompiledPolicy = { conditions: [], variables: new Map(), validations: [], annotations: [] };

/** Called for each expression that does not compile, with the path of its field. */
type OnFailure = (field: string, source: string, failure: CompileFailure) => void;

/** Reports and omits expressions that do not compile. Ignores empty ones, which validation rejects. */
export function compilePolicy(
  spec: PolicyExpressions,
  onFailure: OnFailure,
  { object, params, checkBudget = createCheckBudget() }: PolicyCompileOptions = {},
): CompiledPolicy {
  const error = checkSourceLimits(sourcesOf(spec), 'policy');
  if (error !== undefined) {
    onFailure(WHOLE, '', { failure: error, about: 'result' });
    return NOTHING;
  }
  const declared = { params: spec.paramKind !== undefined, objectType: object, paramsType: params };
  const attempt = (field: string, source: string | undefined, environment: Environment, expect: readonly CelType[]) => {
    if (source === undefined || source.trim() === '') return undefined;
    const compiled = compile(source, environment, { expect, checkBudget });
    if (!('failure' in compiled)) return compiled;
    onFailure(field, source, compiled);
    return undefined;
  };

  const plain = expressionEnvironment({ ...declared, authorizer: true });
  const conditions = (spec.matchConditions ?? []).flatMap(({ name, expression }, i) => {
    const program = attempt(`spec.matchConditions[${i}].expression`, expression, plain, [BOOL]);
    return program === undefined ? [] : [{ name, program }];
  });

  // Each variable sees the variables before it.
  const variables = new Map<string, Program>();
  const environmentNow = (authorizer: boolean) => {
    const known = Object.fromEntries([...variables].map(([name, { type }]) => [name, type]));
    return expressionEnvironment({
      ...declared,
      authorizer,
      variables: objectType('kubernetes.variables', known),
    });
  };
  for (const [i, { name, expression }] of (spec.variables ?? []).entries()) {
    const program = attempt(`spec.variables[${i}].expression`, expression, environmentNow(true), [DYN]);
    if (program !== undefined) variables.set(name, precompute(program));
  }

  const full = environmentNow(true);
  const withoutAuthorizer = environmentNow(false);
  const validations = (spec.validations ?? []).flatMap((validation, i) => {
    const field = `spec.validations[${i}]`;
    const program = attempt(`${field}.expression`, validation.expression, full, [BOOL]);
    const message = attempt(`${field}.messageExpression`, validation.messageExpression, withoutAuthorizer, [STRING]);
    return program === undefined ? [] : [{ validation, program, message }];
  });
  const annotations = (spec.auditAnnotations ?? []).flatMap(({ key, valueExpression }, i) => {
    const field = `spec.auditAnnotations[${i}].valueExpression`;
    const program = attempt(field, valueExpression, withoutAuthorizer, [STRING, NULL]);
    return program === undefined ? [] : [{ key, program }];
  });
  return { conditions, variables, validations, annotations };
}

/** Returns all expressions of a policy. */
export function sourcesOf({ matchConditions, variables, validations, auditAnnotations }: PolicyExpressions): string[] {
  return [
    ...[...(matchConditions ?? []), ...(variables ?? [])].map(({ expression }) => expression),
    ...(validations ?? []).flatMap(({ expression, messageExpression = '' }) => [expression, messageExpression]),
    ...(auditAnnotations ?? []).map(({ valueExpression }) => valueExpression),
  ].filter((source) => source.trim() !== '');
}

/** Checks the expressions of a policy that is being written. */
export function checkExpressions(spec: PolicyExpressions): FieldError[] {
  const errors: FieldError[] = [];
  compilePolicy(spec, (field, source, failure) => {
    const text = failureText(failure);
    errors.push(field === WHOLE ? forbiddenField(field, text) : invalidValue(field, source, text));
  });
  return errors;
}

export function failureText({ about, failure }: CompileFailure): string {
  return about === 'source' ? `compilation failed: ${failure}` : failure;
}
