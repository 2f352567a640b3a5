/** Answers reviews: who am I, may I, may they, whose token is this. Nothing is stored. */
import type { Attributes } from '#engine/auth/authorize.ts';
import type { Call } from '#engine/handlers/call.ts';
import { readObject } from '#engine/handlers/read-object.ts';
import { respondObject } from '#engine/handlers/respond.ts';
import { shapeObject } from '#engine/handlers/shape.ts';
import { writeOptions } from '#engine/options.ts';
import type { ApiResponse, UserInfo } from '#engine/request.ts';
import { invalid } from '#kube/api-error.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

interface AccessSpec {
  resourceAttributes?: Partial<
    Record<'namespace' | 'verb' | 'group' | 'version' | 'resource' | 'subresource' | 'name', string>
  >;
  nonResourceAttributes?: { path?: string; verb?: string };
  user?: string;
  groups?: string[];
  uid?: string;
  extra?: Record<string, string[]>;
}

type Answer = (call: Call, object: KubeObject) => object;

const ANSWERS: Record<string, Answer> = {
  SelfSubjectReview: ({ request }) => ({ userInfo: shownUser(request.user) }),
  TokenReview: reviewToken,
  SelfSubjectAccessReview: (call, object) => access(call, object, call.request.user, specOf(object)),
  SubjectAccessReview: reviewSubject,
  LocalSubjectAccessReview: reviewSubject,
};

export async function review(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'CreateOptions');
  const object = await readObject(call);
  const warnings = shapeObject(call, object, options.fieldValidation);
  const status = ANSWERS[call.served.resource.kind]!(call, object);
  object.metadata.creationTimestamp = timestamp(call.clock.now());
  return respondObject(call, { ...object, status }, { status: 201, warnings });
}

function specOf(object: KubeObject): AccessSpec {
  return object['spec'] ?? {};
}

function shownUser({ name, uid, groups, extra }: UserInfo): object {
  return { username: name, ...(uid ? { uid } : {}), groups, ...(extra ? { extra } : {}) };
}

function reviewToken(call: Call, object: KubeObject): object {
  const { token } = (object['spec'] ?? {}) as { token?: string };
  if (!token)
    throw refused(call, object, [requiredValue('spec.token', 'token is required for TokenReview in authentication')]);
  const user = call.tokens(token);
  return user === undefined
    ? { user: {}, error: 'invalid bearer token' }
    : { authenticated: true, user: shownUser(user) };
}

function reviewSubject(call: Call, object: KubeObject): object {
  const spec = specOf(object);
  const { user, groups = [], uid, extra } = spec;
  if (!user && groups.length === 0) {
    throw refused(call, object, [invalidValue('spec.user', '', 'at least one of user or group must be specified')]);
  }
  const { namespace } = call.route;
  if (namespace !== '' && spec.resourceAttributes?.namespace !== namespace) {
    const given = spec.resourceAttributes?.namespace ?? '';
    throw refused(call, object, [
      invalidValue('spec.resourceAttributes.namespace', given, 'must match metadata.namespace'),
    ]);
  }
  return access(call, object, { name: user ?? '', groups, uid, extra }, spec);
}

function access(call: Call, object: KubeObject, user: UserInfo, spec: AccessSpec): object {
  const attributes = attributesOf(spec);
  if (attributes === undefined) {
    const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    throw refused(call, object, [invalidValue('spec.resourceAttributes', spec.resourceAttributes, detail)]);
  }
  const { allowed, reason } = call.authorizer.authorize(user, attributes);
  return { allowed, ...(reason ? { reason } : {}) };
}

function attributesOf({
  resourceAttributes: resource,
  nonResourceAttributes: path,
}: AccessSpec): Attributes | undefined {
  if ((resource === undefined) === (path === undefined)) return undefined;
  if (path !== undefined) return { verb: path.verb ?? '', path: path.path ?? '' };
  const { verb = '', group = '', version = '', subresource = '', namespace = '', name = '' } = resource!;
  return { verb, group, version, resource: resource!.resource ?? '', subresource, namespace, name };
}

function refused({ served }: Call, { metadata }: KubeObject, errors: FieldError[]): Error {
  return invalid(served.resource, metadata.name ?? '', errors);
}
