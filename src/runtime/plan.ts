/**
 * The result of a decision, as data that leaves the executor (apply.ts) no choices. The `why` of each change becomes
 * the log line and the message of the Event.
 */
import type { DeleteOptions, ObjectName, PatchType } from '#client/client.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { invariant } from '#lib/invariant.ts';
import type { EventNote } from '#runtime/events.ts';

interface ExplainedChange {
  /** The reason for users: `the VM should run and has no instance`. */
  readonly why: string;
  /** The reason of the Event, in CamelCase. Default: one for the verb, and no Event for a successful patch. */
  readonly reason?: string;
}

/** Creates an object. The plan decides its name, so that applying the plan twice creates one object. */
export interface CreateChange extends ExplainedChange {
  readonly do: 'create';
  readonly type: ResourceType;
  readonly object: KubeObject;
  /**
   * Reports whether an existing object of this name is the same one, so that there is nothing to do; otherwise the
   * decision was based on an outdated state. By default, it is the same if it has the same controller, and an error if
   * it has another one.
   */
  readonly isSame?: (present: Stored) => boolean;
  /** POSTs to this subresource of the existing object with this name: `binding`, `eviction`. */
  readonly subresource?: string;
}

export interface PatchChange extends ExplainedChange {
  readonly do: 'patch';
  readonly type: ResourceType;
  readonly name: ObjectName;
  /** Patches only the object with this uid, never another one with the same name. */
  readonly uid?: string;
  readonly patch: { readonly type: PatchType; readonly body: unknown };
  readonly subresource?: string;
}

export interface DeleteChange extends ExplainedChange, Pick<DeleteOptions, 'propagationPolicy' | 'gracePeriodSeconds'> {
  readonly do: 'delete';
  readonly type: ResourceType;
  readonly name: ObjectName;
  readonly uid: string;
  /** Deletes the object only if it still has this revision. */
  readonly resourceVersion?: string;
}

export type Change = CreateChange | PatchChange | DeleteChange;

export interface Plan {
  /** Applied in this order. The first failure stops the plan, unless continueOnError is set. */
  readonly changes: readonly Change[];
  /**
   * The changes are independent: all are applied, and the plan fails in the end (PlanFailure). Calls conclude()
   * afterwards.
   */
  readonly continueOnError?: boolean;
  /** The subject's complete status; undefined keeps it. Written before the changes. */
  readonly status?: Readonly<Record<string, unknown>>;
  /** Recorded for the subject before the changes. A repeated Event increments a count. */
  readonly events?: readonly EventNote[];
  /** Reconcile again after this time, if nothing else triggers it before. */
  readonly requeueAfterMs?: number;
}

/** A change that could not be applied. */
export interface FailedChange {
  readonly change: Change;
  readonly error: unknown;
}

export const EMPTY_PLAN: Plan = { changes: [] };

/** Reports whether the controller's conclude() is called after the changes of this plan. */
export function needsConclusion(plan: Plan): boolean {
  return plan.continueOnError === true;
}

/** A decision that needs more changes returns a part of them and is reconciled again. */
export const MAX_CHANGES = 150;

/** Checks the plan before anything is written. A failure is a bug. */
export function checkPlan({ changes, requeueAfterMs = 0 }: Plan): void {
  invariant(changes.length <= MAX_CHANGES, `a plan has at most ${MAX_CHANGES} changes, this one has ${changes.length}`);
  invariant(requeueAfterMs >= 0 && Number.isFinite(requeueAfterMs), 'requeueAfterMs is in the future');
  for (const change of changes) {
    invariant(change.why !== '', 'a change has a reason');
    if (change.do === 'create') invariant(change.object.metadata.name, 'the plan decides the name of a created object');
    if (change.do === 'delete') invariant(change.uid !== '', 'a delete has a uid');
  }
}
