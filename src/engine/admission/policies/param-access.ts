/**
 * Prevents users from reading objects through policies: expressions see whole parameters and messages can reveal them,
 * so writing a paramKind requires permission to get all objects of that kind, and writing a paramRef permission to get
 * the referenced objects. Members of system:masters may read everything anyway.
 */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import { paramResource } from '#engine/admission/policies/params.ts';
import {
  BINDING_COLLECTION,
  POLICY_COLLECTION,
  type Policy,
  type PolicyBinding,
} from '#engine/admission/policies/policy-spec.ts';
import type { ParamKind } from '#engine/expressions/compile-policy.ts';
import type { Authorizer } from '#engine/auth/authorize.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';
import { invalid } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField } from '#kube/field-error.ts';
import { goText } from '#kube/go/go-text.ts';
import { parseApiVersion } from '#kube/meta.ts';

interface ParamAccessParts {
  readonly store: Store;
  readonly registry: Registry;
  readonly authorizer: Authorizer;
}

interface Target {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** The permission that is required if the objects are unknown. */
const EVERYTHING: Target = { group: '*', version: '*', resource: '*' };

export function paramAccess(parts: ParamAccessParts): ValidatingStep {
  return (attributes) => {
    const { operation, resource, subresource, user } = attributes;
    if (operation !== 'CREATE' && operation !== 'UPDATE') return;
    const { collection } = resource;
    if (collection !== POLICY_COLLECTION && collection !== BINDING_COLLECTION) return;
    if (subresource !== '' || user.groups.includes(MASTERS)) return;
    if (collection === POLICY_COLLECTION) checkPolicy(parts, attributes);
    else checkBinding(parts, attributes);
  };
}

function checkPolicy({ authorizer, registry }: ParamAccessParts, attributes: AdmissionAttributes): void {
  const kind = paramKindOf(attributes.object);
  const before = paramKindOf(attributes.oldObject);
  if (kind === undefined || deepEqual(kind, before)) return;
  const { user } = attributes;
  const all = { verb: 'get', subresource: '', namespace: '*', name: '*' };
  if (authorizer.authorize(user, { ...targetOf(kind, registry), ...all }).allowed) return;
  const shown = `(kind=${kind.kind ?? ''}, apiVersion=${kind.apiVersion ?? ''})`;
  const why = `user ${userText(user)} must have "get" permission on all objects of the referenced paramKind ${shown}`;
  throw forbiddenFor(attributes, 'spec.paramKind', why);
}

/** The policy determines the kind of the parameters; the author of a later change is checked then. */
function checkBinding({ store, authorizer, registry }: ParamAccessParts, attributes: AdmissionAttributes): void {
  const spec = (attributes.object as PolicyBinding | undefined)?.spec;
  const before = (attributes.oldObject as PolicyBinding | undefined)?.spec;
  if (spec?.paramRef === undefined) return;
  const { policyName, paramRef } = spec;
  if (before?.policyName === policyName && deepEqual(paramRef, before.paramRef)) return;
  const { user } = attributes;
  const policy = storedPolicy(store, policyName);
  const kind = policy?.spec?.paramKind;
  const target = kind === undefined ? EVERYTHING : targetOf(kind, registry);
  const { name = '', namespace = '' } = paramRef;
  const verb = name === '' ? 'list' : 'get';
  // Without a namespace, the parameters come from the namespace of each object: any namespace.
  if (authorizer.authorize(user, { ...target, verb, subresource: '', namespace, name }).allowed) return;
  const unknown = unknownText(policyName, policy, target);
  const why =
    unknown === undefined
      ? `user ${userText(user)} does not have "${verb}" permission on the object referenced by paramRef`
      : `${unknown} to determine minimum required permissions and user ${userText(user)} does not have "${verb}" permission for all groups, versions and resources`;
  throw forbiddenFor(attributes, 'spec.paramRef', why);
}

function unknownText(policyName: string, policy: Policy | undefined, { resource }: Target): string | undefined {
  if (policy === undefined) return `unable to get policy ${policyName}`;
  const kind = policy.spec?.paramKind;
  if (kind === undefined || resource !== '*') return undefined;
  return `unable to resolve paramKind &{${kind.apiVersion ?? ''} ${kind.kind ?? ''}}`;
}

/** A kind that is not served (yet) may be any resource of its group. */
function targetOf(kind: ParamKind, registry: Registry): Target {
  const resource = paramResource(kind, registry);
  return { ...parseApiVersion(kind.apiVersion ?? ''), resource: resource?.plural ?? '*' };
}

/** Includes writes in flight: the binding's write comes after them. */
function storedPolicy(store: Store, name: string): Policy | undefined {
  const entry = store.latest(POLICY_COLLECTION, name);
  return entry && decodeStored(entry.bytes);
}

/** Formats a user as Go prints the struct. */
function userText({ name, uid = '', groups, extra = {} }: UserInfo): string {
  return `&{${name} ${uid} ${goText(groups)} ${goText(extra)}}`;
}

function forbiddenFor({ resource, name, object }: AdmissionAttributes, field: string, why: string): Error {
  return invalid(resource, name || (object?.metadata.name ?? ''), [forbiddenField(field, why)]);
}

function paramKindOf(policy: Policy | undefined): ParamKind | undefined {
  return policy?.spec?.paramKind;
}
