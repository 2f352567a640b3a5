/** The values of expression variables for one request, each computed on first use. */
import { authorizerValue, resourceCheckValue, type AccessCheck } from '#cel/kubernetes/authorizer.ts';
import type { Activation } from '#cel/environment.ts';
import { adaptJson } from '#cel/evaluate/adapt-json.ts';
import type { CelMap, CelValue } from '#cel/value.ts';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { admissionRequest, objectIn } from '#engine/admission/matching/admission-request.ts';
import { namespaceOf } from '#engine/admission/matching/match-resources.ts';
import type { Authorizer } from '#engine/auth/authorize.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { KubeObject } from '#kube/meta.ts';

interface ActivationParts {
  readonly attributes: AdmissionAttributes;
  /** The version that the matching rule refers to. */
  readonly version: Resource;
  readonly authorizer: Authorizer;
  /** Returns the object's namespace; undefined for cluster-scoped kinds and for namespaces themselves. */
  namespaceObject(): KubeObject | undefined;
}

/** The values that several policies share in one request. */
export class RequestValues {
  readonly #parts: ActivationParts;
  readonly #cached = new Map<string, CelValue>();

  constructor(parts: ActivationParts) {
    this.#parts = parts;
  }

  /** Returns an activation with the parameters and variables of one policy, if any. */
  activation(own: { readonly params?: KubeObject | undefined; readonly variables?: CelMap } = {}): Activation {
    return (name) => {
      if (name === 'variables') return own.variables;
      if (name === 'params') return adaptJson(own.params ?? null);
      return this.#value(name);
    };
  }

  #value(name: string): CelValue | undefined {
    const known = this.#cached.get(name);
    if (known !== undefined) return known;
    const value = this.#compute(name);
    if (value !== undefined) this.#cached.set(name, value);
    return value;
  }

  #compute(name: string): CelValue | undefined {
    const { attributes, version } = this.#parts;
    switch (name) {
      case 'object':
        return adaptJson(objectIn(attributes.object, attributes, version) ?? null);
      case 'oldObject':
        return adaptJson(objectIn(attributes.oldObject, attributes, version) ?? null);
      case 'request':
        return adaptJson(admissionRequest(attributes, version));
      case 'namespaceObject':
        return adaptJson(this.#parts.namespaceObject() ?? null);
      case 'authorizer':
        return authorizerValue(this.#check(attributes.user));
      case 'authorizer.requestResource':
        return this.#requestResource();
      default:
        return undefined;
    }
  }

  #requestResource(): CelValue {
    const { resource, subresource, name, user } = this.#parts.attributes;
    const { group, plural } = resource;
    const namespace = namespaceOf(this.#parts.attributes);
    return resourceCheckValue(this.#check(user), { group, resource: plural, subresource, namespace, name });
  }

  #check(user: UserInfo): AccessCheck {
    const { authorizer } = this.#parts;
    return {
      authorize: (wanted) => authorizer.authorize(user, wanted),
      serviceAccount: (namespace, name) => this.#check(serviceAccountUser(namespace, { name, uid: '' })),
    };
  }
}
