/**
 * Type-checks a policy's validations against the schemas of the kinds that its rules name. Only warns: a policy works
 * on actual objects, and a rule may target versions that are not served yet.
 */
import { kindType } from '#cel/check/schema-type.ts';
import type { CelType } from '#cel/type.ts';
import { createCheckBudget } from '#cel/limits/source-limits.ts';
import { compilePolicy, failureText, sourcesOf } from '#engine/expressions/compile-policy.ts';
import type { PolicySpec } from '#engine/admission/policies/policy-spec.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { parseApiVersion } from '#kube/meta.ts';

interface ExpressionWarning {
  readonly fieldRef: string;
  readonly warning: string;
}

/** Limits for type checking: a policy for all kinds is not checked against all, nor a long one against many. */
const MAX_TYPES = 10;
const MAX_CHECKED_LENGTH = 10_000;

export function checkTypes(spec: PolicySpec, resources: readonly Resource[]): ExpressionWarning[] {
  const warnings = new Map<string, string[]>();
  const params = paramsType(spec, resources);
  const checkBudget = createCheckBudget();
  for (const resource of namedKinds(spec, resources)) {
    const { group, version, kind } = resource;
    const object = typeOfKind(resource);
    const found: [field: string, failure: string][] = [];
    compilePolicy(spec, (field, _, failure) => found.push([field, failureText(failure)]), {
      object,
      params,
      checkBudget,
    });
    // Further errors would be about the spent budget, not about types.
    if (checkBudget.isSpent) break;
    for (const [field, failure] of found) {
      warnings.set(field, [...(warnings.get(field) ?? []), `${group}/${version}, Kind=${kind}: ${failure}\n`]);
    }
  }
  return [...warnings]
    .filter(([field]) => field.startsWith('spec.validations['))
    .map(([fieldRef, texts]) => ({ fieldRef, warning: texts.join('\n') }));
}

/** Returns the kinds that the rules name explicitly, in order; wildcards and subresources have no single type. */
function namedKinds(spec: PolicySpec, resources: readonly Resource[]): Resource[] {
  const { matchConstraints } = spec;
  const length = sourcesOf(spec).join('').length;
  const most = Math.min(MAX_TYPES, Math.floor(MAX_CHECKED_LENGTH / Math.max(length, 1)));
  const named = (values: readonly string[] | undefined, value: string) => values?.includes(value) === true;
  const rules = matchConstraints?.resourceRules ?? [];
  const kinds = resources.filter(({ group, version, plural }) =>
    rules.some(
      (rule) => named(rule.apiGroups, group) && named(rule.apiVersions, version) && named(rule.resources, plural),
    ),
  );
  const key = ({ group, version, kind }: Resource) => `${group}/${version}/${kind}`;
  return kinds.sort((a, b) => (key(a) < key(b) ? -1 : 1)).slice(0, most);
}

function paramsType({ paramKind }: PolicySpec, resources: readonly Resource[]): CelType | undefined {
  if (paramKind === undefined) return undefined;
  const { group, version } = parseApiVersion(paramKind.apiVersion ?? '');
  const found = resources.find((one) => one.group === group && one.version === version && one.kind === paramKind.kind);
  return found && typeOfKind(found);
}

const known = new WeakMap<Resource, CelType>();

function typeOfKind(resource: Resource): CelType {
  let type = known.get(resource);
  if (type === undefined) known.set(resource, (type = kindType(resource.schema, resource.kind)));
  return type;
}
