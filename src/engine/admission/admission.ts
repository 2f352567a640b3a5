/**
 * The admission chain: what may still change or refuse a request that is allowed and well formed, in Kubernetes' order.
 *
 *   mutate ──► (the handler prepares and validates the object) ──► validate ──► guard ──► write
 *
 * Mutating and validating steps may wait for others (webhooks); meanwhile the object may move, and then all of it runs
 * again on its new state. Guards are the last word: they run in the same turn as the write and see what is in flight.
 */
import type { Resource } from '#engine/registry/resource.ts';
import type { UserInfo } from '#engine/request.ts';
import type { KubeObject } from '#kube/meta.ts';

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** What the chain has to say besides yes and no. */
export interface AdmissionNotes {
  /** Becomes a Warning header of the answer, whether the request is refused or not. */
  warn(message: string): void;
  /** Becomes part of the audit record; the first value of a key stays. */
  annotate(key: string, value: string): void;
}

export interface AdmissionAttributes {
  readonly operation: Operation;
  readonly resource: Resource;
  /** Of `object`: the resource's own, or that of the subresource (Scale, Eviction, TokenRequest). */
  readonly kind: GroupVersionKind;
  readonly subresource: string;
  readonly namespace: string;
  /** '' while it is still to be generated. */
  readonly name: string;
  /** Absent for DELETE. Mutating steps may change it in place. */
  readonly object: KubeObject | undefined;
  /** Absent for CREATE. Nobody changes it. */
  readonly oldObject: KubeObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** CreateOptions, UpdateOptions, PatchOptions, DeleteOptions with kind and apiVersion, as webhooks see them. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly notes: AdmissionNotes;
  readonly signal: AbortSignal;
  /**
   * Brings an object that a mutating step changed back into the shape of its kind: unknown fields out, defaults in.
   * Throws an ApiError for one that is not of its kind any more.
   */
  reshape(object: KubeObject): void;
}

/** Changes `attributes.object` in place, or throws an ApiError to refuse. */
export type MutatingStep = (attributes: AdmissionAttributes) => void | Promise<void>;
/** Throws an ApiError to refuse. */
export type ValidatingStep = (attributes: AdmissionAttributes) => void | Promise<void>;
/** Throws an ApiError to refuse; synchronous, right before the write. */
export type Guard = (attributes: AdmissionAttributes) => void;

export interface Admission {
  mutate(attributes: AdmissionAttributes): void | Promise<void>;
  validate(attributes: AdmissionAttributes): void | Promise<void>;
  guard(attributes: AdmissionAttributes): void;
}

export interface AdmissionSteps {
  readonly mutating: readonly MutatingStep[];
  readonly validating: readonly ValidatingStep[];
  readonly guards: readonly Guard[];
}

export function admissionChain({ mutating, validating, guards }: AdmissionSteps): Admission {
  return {
    mutate: inOrder(mutating),
    validate: inOrder(validating),
    guard(attributes) {
      for (const guard of guards) guard(attributes);
    },
  };
}

/** One after the other; without a promise as long as nobody needs one, because most requests match nothing. */
function inOrder(steps: readonly ValidatingStep[]): ValidatingStep {
  const from = (start: number, attributes: AdmissionAttributes): void | Promise<void> => {
    for (let i = start; i < steps.length; i++) {
      const pending = steps[i]!(attributes);
      if (pending instanceof Promise) return pending.then(() => from(i + 1, attributes));
    }
  };
  return (attributes) => from(0, attributes);
}
