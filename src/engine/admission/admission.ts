/**
 * The admission chain: changes or refuses requests that are authorized and well formed, in Kubernetes' order.
 *
 *   mutate ──► (the handler prepares and validates the object) ──► validate ──► guard ──► write
 *
 * Mutating and validating steps may wait (webhooks). If the stored object changes meanwhile, the whole chain runs again on
 * its new state. Guards decide last: they run in the same turn as the write and see writes in flight.
 */
import type { GroupVersionKind, Resource } from '#engine/registry/resource.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { KubeObject } from '#kube/meta.ts';
import { forbidden, type ApiError } from '#kube/api-error.ts';

export type AdmissionOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

/** Warnings and audit annotations that the chain adds to a request. */
export interface AdmissionNotes {
  /** Adds a Warning header to the response, even if the request is refused. */
  warn(message: string): void;
  /** Adds an annotation to the audit record; the first value of a key wins. */
  annotate(key: string, value: string): void;
}

export interface AdmissionAttributes {
  readonly operation: AdmissionOperation;
  readonly resource: Resource;
  /** Kind of `object`: the resource's own, or that of the subresource (Scale, Eviction, TokenRequest). */
  readonly kind: GroupVersionKind;
  readonly subresource: string;
  readonly namespace: string;
  /** '' if the name is not generated yet. */
  readonly name: string;
  /** Absent for DELETE. Mutating steps may change it in place. */
  readonly object: KubeObject | undefined;
  /** Absent for CREATE. Must not be changed. */
  readonly oldObject: KubeObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** CreateOptions, UpdateOptions, PatchOptions, DeleteOptions with kind and apiVersion, as webhooks see them. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly notes: AdmissionNotes;
  readonly signal: AbortSignal;
  /**
   * Restores the shape of a mutated object: removes unknown fields and sets defaults. Throws an ApiError if the object
   * is no longer of its kind.
   */
  reshape(object: KubeObject): void;
}

/** Changes `attributes.object` in place, or throws an ApiError to refuse the request. */
export type MutatingStep = (attributes: AdmissionAttributes) => void | Promise<void>;
/** Throws an ApiError to refuse the request. */
export type ValidatingStep = (attributes: AdmissionAttributes) => void | Promise<void>;
/** Throws an ApiError to refuse the request. Synchronous, immediately before the write. */
export type Guard = (attributes: AdmissionAttributes) => void;

export interface Admission {
  mutate(attributes: AdmissionAttributes): void | Promise<void>;
  validate(attributes: AdmissionAttributes): void | Promise<void>;
  guard(attributes: AdmissionAttributes): void;
}

interface AdmissionSteps {
  readonly mutating: readonly MutatingStep[];
  readonly validating: readonly ValidatingStep[];
  readonly guards: readonly Guard[];
}

export function admissionChain({ mutating, validating, guards }: AdmissionSteps): Admission {
  return {
    mutate: runInOrder(mutating),
    validate: runInOrder(validating),
    guard(attributes) {
      for (const guard of guards) guard(attributes);
    },
  };
}

/** Runs steps in order. Returns no promise unless a step does, because most requests match nothing. */
function runInOrder(steps: readonly ValidatingStep[]): ValidatingStep {
  const from = (start: number, attributes: AdmissionAttributes): void | Promise<void> => {
    for (let i = start; i < steps.length; i++) {
      const pending = steps[i]!(attributes);
      if (pending instanceof Promise) return pending.then(() => from(i + 1, attributes));
    }
  };
  return (attributes) => from(0, attributes);
}

/** Builds the 403 of an admission step, with Kubernetes' message. */
export function refuse({ resource, name, object }: AdmissionAttributes, why: string): ApiError {
  const { name: own, generateName } = object?.metadata ?? {};
  return forbidden(resource, name || own || generateName || 'Unknown', why);
}
