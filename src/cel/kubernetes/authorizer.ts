/**
 * Kubernetes' `authorizer` library. It builds the attributes of an access check; the engine makes the decision
 * (AccessCheck).
 *
 *   authorizer.path(p) ─► check(verb) ─► allowed, reason, errored, error
 *   authorizer.group(g).resource(r)[.subresource|namespace|name|fieldSelector|labelSelector]* ─► check(verb) ─► ...
 */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { method } from '#cel/extensions/overload.ts';
import type { Library, Overload } from '#cel/library.ts';
import type { CelType, OpaqueType } from '#cel/type.ts';
import { BOOL, STRING, opaque } from '#cel/type.ts';
import type { CelValue } from '#cel/value.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';
import { nameErrors } from '#kube/names.ts';

interface PathCheckAttributes {
  readonly path: string;
  readonly verb: string;
}

interface ResourceCheckAttributes {
  readonly group: string;
  /** Always `*`: expressions do not name a version. */
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly verb: string;
  /** The selector as written, or undefined. The authorizer ignores a selector that does not parse. */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface AccessDecision {
  readonly allowed: boolean;
  readonly reason?: string;
  readonly error?: string;
}

/** Authorizes the requests of one user. */
export interface AccessCheck {
  authorize(attributes: PathCheckAttributes | ResourceCheckAttributes): AccessDecision;
  serviceAccount(namespace: string, name: string): AccessCheck;
}

export const AUTHORIZER = opaque('kubernetes.authorization.Authorizer');
const PATH_CHECK = opaque('kubernetes.authorization.PathCheck');
const GROUP_CHECK = opaque('kubernetes.authorization.GroupCheck');
export const RESOURCE_CHECK = opaque('kubernetes.authorization.ResourceCheck');
const DECISION = opaque('kubernetes.authorization.Decision');

/** A value of this library. It is equal only to itself. */
class AccessValue<T> extends CelOpaque {
  override readonly type: OpaqueType;
  readonly of: T;

  constructor(type: OpaqueType, of: T) {
    super();
    this.type = type;
    this.of = of;
  }

  override equals(other: CelOpaque): boolean {
    return other === this;
  }
}

interface PendingCheck<A> {
  readonly check: AccessCheck;
  readonly attributes: A;
}

type Authorizer = AccessValue<AccessCheck>;
type PathCheck = AccessValue<PendingCheck<{ path: string }>>;
type GroupCheck = AccessValue<PendingCheck<{ group: string }>>;
type ResourceCheck = AccessValue<PendingCheck<Omit<ResourceCheckAttributes, 'verb'>>>;
type Decision = AccessValue<AccessDecision>;

/** Returns the value of the variable `authorizer`. */
export function authorizerValue(check: AccessCheck): CelOpaque {
  return new AccessValue(AUTHORIZER, check);
}

/** Returns the value of `authorizer.requestResource`: a check of the resource of the request. */
export function resourceCheckValue(
  check: AccessCheck,
  request: Pick<ResourceCheckAttributes, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>,
): CelOpaque {
  const { group, resource, subresource, namespace, name } = request;
  return new AccessValue(RESOURCE_CHECK, {
    check,
    attributes: { group, version: '*', resource, subresource, namespace, name },
  });
}

/** Allows two checks in one expression. */
const CHECK_COST = 350_000;

export const authorizerLibrary: Library = {
  functions: {
    allowed: [decisionOverload('decision_allowed', BOOL, ({ allowed }) => allowed)],
    check: [
      method<[PathCheck, string]>('pathcheck_check', [PATH_CHECK, STRING], DECISION, decide),
      method<[ResourceCheck, string]>('resourcecheck_check', [RESOURCE_CHECK, STRING], DECISION, decide),
    ],
    error: [decisionOverload('decision_error', STRING, ({ error }) => error ?? '')],
    errored: [decisionOverload('decision_errored', BOOL, ({ error }) => error !== undefined)],
    fieldSelector: [attributeOverload('authorizer_fieldselector', 'fieldSelector', selectorCost)],
    group: [
      method<[Authorizer, string]>('authorizer_group', [AUTHORIZER, STRING], GROUP_CHECK, (_budget, { of }, group) => {
        return new AccessValue(GROUP_CHECK, { check: of, attributes: { group } });
      }),
    ],
    labelSelector: [attributeOverload('authorizer_labelselector', 'labelSelector', selectorCost)],
    name: [attributeOverload('resourcecheck_name', 'name')],
    namespace: [attributeOverload('resourcecheck_namespace', 'namespace')],
    path: [
      method<[Authorizer, string]>('authorizer_path', [AUTHORIZER, STRING], PATH_CHECK, (_budget, { of }, path) => {
        if (isBlank(path)) return new CelFault('path must not be empty');
        return new AccessValue(PATH_CHECK, { check: of, attributes: { path } });
      }),
    ],
    reason: [decisionOverload('decision_reason', STRING, ({ reason }) => reason ?? '')],
    resource: [
      method<[GroupCheck, string]>(
        'groupcheck_resource',
        [GROUP_CHECK, STRING],
        RESOURCE_CHECK,
        (_budget, { of }, name) => {
          if (isBlank(name)) return new CelFault('resource must not be empty');
          const { group } = of.attributes;
          return resourceCheckValue(of.check, { group, resource: name, subresource: '', namespace: '', name: '' });
        },
      ),
    ],
    serviceAccount: [
      method<[Authorizer, string, string]>(
        'authorizer_serviceaccount',
        [AUTHORIZER, STRING, STRING],
        AUTHORIZER,
        (_budget, { of }, namespace, name) => {
          if (nameErrors('subdomain', name).length > 0) return new CelFault('Invalid service account name');
          if (nameErrors('label', namespace).length > 0) return new CelFault('Invalid service account namespace');
          return authorizerValue(of.serviceAccount(namespace, name));
        },
      ),
    ],
    subresource: [attributeOverload('resourcecheck_subresource', 'subresource')],
  },
};

function isBlank(text: string): boolean {
  return !/\S/.test(text);
}

function decide(budget: Budget, { of }: PathCheck | ResourceCheck, verb: string): Decision {
  budget.charge(CHECK_COST);
  return new AccessValue(DECISION, of.check.authorize({ ...of.attributes, verb }));
}

function decisionOverload(id: string, result: CelType, read: (decision: AccessDecision) => CelValue): Overload {
  return method<[Decision]>(id, [DECISION], result, (_budget, { of }) => read(of));
}

type OptionalAttribute = 'subresource' | 'namespace' | 'name' | 'fieldSelector' | 'labelSelector';

function attributeOverload(id: string, field: OptionalAttribute, cost: (text: string) => number = () => 0): Overload {
  return method<[ResourceCheck, string]>(id, [RESOURCE_CHECK, STRING], RESOURCE_CHECK, (budget, { of }, text) => {
    budget.charge(cost(text));
    return new AccessValue(RESOURCE_CHECK, { check: of.check, attributes: { ...of.attributes, [field]: text } });
  });
}

/** Every two characters can be a requirement, which needs a list and an object: together 50 units in Kubernetes. */
function selectorCost(text: string): number {
  return 10 + bytesCost(text.length) + Math.ceil(text.length / 2) * 50;
}
