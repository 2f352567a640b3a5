/**
 * Limits what a request reveals of a stored object to a user who may not read it. Authorization runs before the body
 * arrives and before a request waits; these checks run when the object is read.
 */
import { authorizationError, type Attributes } from '#engine/auth/authorize.ts';
import { NODES } from '#engine/auth/groups.ts';
import type { Call } from '#engine/handlers/call.ts';
import { verbOf, type ResourceRoute } from '#engine/request/route.ts';
import { ApiError } from '#kube/api-error.ts';
import { groupKind } from '#kube/meta.ts';

type Target = Pick<ResourceRoute, 'namespace' | 'name' | 'subresource'>;

/** Throws unless the user of the request has this permission for an object of its resource. */
export function assertAllowed(call: Call, verb: string, target: Target): void {
  const { user } = call.request;
  const attributes = attributesOf(call, verb, target);
  const decision = call.authorizer.authorize(user, attributes);
  if (!decision.allowed) throw authorizationError(user, attributes, decision.reason);
}

/**
 * Throws if the object of a request is no longer bound to the node that sent it: a machine may have been restarted on
 * another node, under the same name, while the body was on its way. Permissions of other users do not depend on objects.
 */
export function assertStillBound(call: Call): void {
  const { request, route } = call;
  if (!request.user.groups.includes(NODES)) return;
  assertAllowed(call, verbOf(request.method, route, request.query) ?? '', route);
}

/**
 * Removes the message of a validation error if the user may not read the object: a patch can copy stored values into
 * fields that validation reports with their value.
 */
export function withoutStoredValues(call: Call, error: unknown): unknown {
  if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 422)) return error;
  const { request, route } = call;
  const read = attributesOf(call, 'get', { ...route, subresource: '' });
  if (call.authorizer.authorize(request.user, read).allowed) return error;
  const subject = `${groupKind(call.served.resource)} ${JSON.stringify(route.name)}`;
  const why = `the reason is not shown, because user ${JSON.stringify(request.user.name)} cannot get it`;
  return new ApiError(error.code, error.reason, `${subject} cannot be changed in this way: ${why}`, { cause: error });
}

function attributesOf({ route }: Call, verb: string, { namespace, name, subresource }: Target): Attributes {
  const { group, version, plural } = route;
  // A namespace is authorized within itself, as everywhere.
  const within = group === '' && plural === 'namespaces' ? name : namespace;
  return { verb, group, version, resource: plural, subresource, namespace: within, name };
}
