/**
 * The AdmissionRequest of admission.k8s.io/v1 without uid and objects, as webhooks and expressions see it. With
 * matchPolicy Equivalent, its version may differ from the client's. Conversion changes only apiVersion, unless a
 * webhook converts (admission/matching/equivalent-forms.ts), which callers must have prepared.
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import type { GroupVersionKind, Resource } from '#engine/registry/resource.ts';
import { namespaceOf } from '#engine/admission/matching/match-resources.ts';
import { formOf } from '#engine/admission/matching/equivalent-forms.ts';
import type { UserInfo } from '#engine/request/request.ts';
import { apiVersionOf, type KubeObject } from '#kube/meta.ts';

export interface AdmissionRequestHead {
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subResource?: string;
  readonly requestKind: GroupVersionKind;
  readonly requestResource: GroupVersionResource;
  readonly requestSubResource?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly operation: string;
  readonly userInfo: {
    readonly username?: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
  readonly dryRun: boolean;
  readonly options: unknown;
}

interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** `version` is the result of a Select. */
export function admissionRequest(attributes: AdmissionAttributes, version: Resource): AdmissionRequestHead {
  const { resource, subresource, name, operation, user, dryRun, options } = attributes;
  const namespace = namespaceOf(attributes);
  const { group, version: requested, kind } = attributes.kind;
  return {
    kind: kindIn(attributes, version),
    resource: resourceName(version),
    ...(subresource === '' ? {} : { subResource: subresource }),
    requestKind: { group, version: requested, kind },
    requestResource: resourceName(resource),
    ...(subresource === '' ? {} : { requestSubResource: subresource }),
    ...(name === '' ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation,
    userInfo: userInfo(user),
    dryRun,
    options,
  };
}

/**
 * Returns the kind in a version. The kind of a subresource (Scale, Eviction) is the same in all versions of its
 * resource.
 */
function kindIn({ kind, resource }: AdmissionAttributes, version: Resource): GroupVersionKind {
  const own = kind.kind === resource.kind && kind.group === resource.group;
  const from = own ? version : kind;
  return { group: from.group, version: from.version, kind: from.kind };
}

/** Returns the object in the version of the rule. The result shares unchanged parts with the object. */
export function objectIn(
  object: KubeObject | undefined,
  attributes: AdmissionAttributes,
  version: Resource,
): KubeObject | undefined {
  if (object === undefined || version === attributes.resource) return object;
  const form = formOf(object, attributes, version);
  if (form !== undefined) return form;
  return { ...object, apiVersion: apiVersionOf(kindIn(attributes, version)) };
}

function resourceName({ group, version, plural }: Resource): GroupVersionResource {
  return { group, version, resource: plural };
}

function userInfo({ name, uid = '', groups, extra = {} }: UserInfo): AdmissionRequestHead['userInfo'] {
  return {
    ...(name === '' ? {} : { username: name }),
    ...(uid === '' ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}
