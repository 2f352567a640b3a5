/** Answers reviews of identity, access, rules and tokens. Nothing is stored. */
import type { Attributes, RuleList } from '#engine/auth/authorize.ts';
import type { Call } from '#engine/handlers/call.ts';
import { readRequestObject } from '#engine/handlers/write/read-object.ts';
import { respondObject } from '#engine/handlers/respond.ts';
import { shapeObject } from '#engine/handlers/write/shape.ts';
import { writeOptions } from '#engine/handlers/options.ts';
import type { ApiResponse, UserInfo } from '#engine/request/request.ts';
import { badRequest, invalid } from '#kube/api-error.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { API_AUDIENCES } from '#engine/auth/service-accounts/claims.ts';
import { reviewWith } from '#engine/auth/tokens.ts';

interface AccessSpec {
  /** Selectors are accepted but ignored: no rule depends on them. */
  resourceAttributes?: Partial<
    Record<'namespace' | 'verb' | 'group' | 'version' | 'resource' | 'subresource' | 'name', string>
  >;
  nonResourceAttributes?: { path?: string; verb?: string };
  user?: string;
  groups?: string[];
  uid?: string;
  extra?: Record<string, string[]>;
}

type Responder = (call: Call, object: KubeObject) => object;

const ANSWERS: Record<string, Responder> = {
  SelfSubjectReview: ({ request }) => ({ userInfo: formatUser(request.user) }),
  TokenReview: reviewToken,
  SelfSubjectAccessReview: reviewSelf,
  SelfSubjectRulesReview: reviewRules,
  SubjectAccessReview: reviewSubject,
  LocalSubjectAccessReview: reviewSubject,
};

export async function review(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'CreateOptions');
  const object = await readRequestObject(call);
  const warnings = shapeObject(call, object, options.fieldValidation);
  const status = ANSWERS[call.served.resource.kind]!(call, object);
  object.metadata.creationTimestamp = timestamp(call.clock.now());
  return respondObject(call, { ...object, status }, { status: 201, warnings });
}

function specOf(object: KubeObject): AccessSpec {
  return object['spec'] ?? {};
}

function reviewSelf(call: Call, object: KubeObject): object {
  const spec = specOf(object);
  assertValid(call, attributeErrors(spec));
  return access(call, call.request.user, spec);
}

function reviewSubject(call: Call, object: KubeObject): object {
  const spec = specOf(object);
  const { user, groups = [], uid, extra } = spec;
  const errors = attributeErrors(spec);
  if (!user && groups.length === 0) {
    errors.push(invalidValue('spec.user', '', 'at least one of user or group must be specified'));
  }
  if (call.served.resource.namespaced) errors.push(...localErrors(call.route.namespace, spec));
  assertValid(call, errors);
  return access(call, { name: user ?? '', groups, ...(uid && { uid }), ...(extra && { extra }) }, spec);
}

/** Lists the rules for one namespace, including cluster-wide ones. */
function reviewRules({ authorizer, request }: Call, object: KubeObject): RuleList {
  const { namespace } = (object['spec'] ?? {}) as { namespace?: string };
  if (!namespace) throw badRequest('no namespace on request');
  const unknown: RuleList = { resourceRules: [], nonResourceRules: [], incomplete: true };
  return authorizer.rulesFor?.(request.user, namespace) ?? unknown;
}

function attributeErrors({ resourceAttributes: resource, nonResourceAttributes: path }: AccessSpec): FieldError[] {
  if (resource !== undefined && path !== undefined) {
    const detail = 'cannot be specified in combination with resourceAttributes';
    return [invalidValue('spec.nonResourceAttributes', path, detail)];
  }
  if (resource !== undefined || path !== undefined) return [];
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [invalidValue('spec.resourceAttributes', undefined, detail)];
}

/** A local review may only ask about its own namespace. */
function localErrors(
  namespace: string,
  { resourceAttributes: resource, nonResourceAttributes: path }: AccessSpec,
): FieldError[] {
  const errors: FieldError[] = [];
  const { namespace: given = '' } = resource ?? {};
  if (resource !== undefined && given !== namespace) {
    errors.push(invalidValue('spec.resourceAttributes.namespace', given, 'must match metadata.namespace'));
  }
  if (path !== undefined) {
    errors.push(invalidValue('spec.nonResourceAttributes', path, 'disallowed on this kind of request'));
  }
  return errors;
}

function assertValid({ served }: Call, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(served.resource, '', errors);
}

function access({ authorizer }: Call, user: UserInfo, spec: AccessSpec): object {
  const { allowed, reason } = authorizer.authorize(user, attributesOf(spec));
  return { allowed, ...(reason ? { reason } : {}) };
}

function attributesOf({ resourceAttributes, nonResourceAttributes: path }: AccessSpec): Attributes {
  if (path !== undefined) return { verb: path.verb ?? '', path: path.path ?? '' };
  const { resource = '', subresource = '', namespace = '', name = '' } = resourceAttributes ?? {};
  const { verb = '', group = '', version = '*' } = resourceAttributes ?? {};
  return { verb, group, version, resource, subresource, namespace, name };
}

/** Returns the status of a TokenReview. An invalid token is a result, not an error. */
export function reviewToken({ tokens }: Pick<Call, 'tokens'>, object: KubeObject): object {
  const { token, audiences = [] } = (object['spec'] ?? {}) as { token?: string; audiences?: string[] };
  if (!token) throw badRequest('token is required for TokenReview in authentication');
  const verdict = reviewWith(tokens, token, audiences.length === 0 ? API_AUDIENCES : audiences);
  if (verdict === undefined) return { user: {}, error: 'invalid bearer token' };
  if ('refused' in verdict) return { user: {}, error: verdict.refused };
  return { authenticated: true, user: formatUser(verdict.user), audiences: [...verdict.audiences] };
}

/** Formats a user for reviews. */
function formatUser({ name, uid, groups, extra }: UserInfo): object {
  return { username: name, ...(uid ? { uid } : {}), groups, ...(extra ? { extra } : {}) };
}
