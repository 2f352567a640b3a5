/**
 * What a decision asks for, as data that leaves the executor (apply.ts) no choices. Each change says why; that becomes
 * the log line and the Event.
 */
import type { DeleteOptions, ObjectName, PatchType } from '#client/client.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { invariant } from '#lib/invariant.ts';
import type { EventNote } from '#runtime/events.ts';

interface Explained {
  /** For people: `the VM is to run and has no instance`. */
  readonly why: string;
  /** The Event's reason, in CamelCase; otherwise one that names the verb, and none for a patch that succeeds. */
  readonly reason?: string;
}

/** The object's name is decided here, so that doing it twice makes one object. */
export interface CreateChange extends Explained {
  readonly do: 'create';
  readonly type: ResourceType;
  readonly object: KubeObject;
  /** A POST to the subresource of an object that is there: `binding`, `eviction`. The object's metadata name it. */
  readonly subresource?: string;
}

export interface PatchChange extends Explained {
  readonly do: 'patch';
  readonly type: ResourceType;
  readonly name: ObjectName;
  /** Only this very object; another of the same name stays as it is. */
  readonly uid?: string;
  readonly patch: { readonly type: PatchType; readonly body: unknown };
  readonly subresource?: string;
}

export interface DeleteChange extends Explained, Pick<DeleteOptions, 'propagationPolicy' | 'gracePeriodSeconds'> {
  readonly do: 'delete';
  readonly type: ResourceType;
  readonly name: ObjectName;
  readonly uid: string;
  /** Only if it still is in this state. */
  readonly resourceVersion?: string;
}

export type Change = CreateChange | PatchChange | DeleteChange;

export interface Plan {
  /** Done in this order; the first that fails ends it, unless the plan is to go on. */
  readonly changes: readonly Change[];
  /** The changes have nothing to do with each other: all are tried, and the plan fails in the end (PlanFailure). */
  readonly goOn?: boolean;
  /** The subject's whole status as it should be; absent leaves it as it is. Written before the changes. */
  readonly status?: Readonly<Record<string, unknown>>;
  /** Told of the subject before the changes are made; the same said again raises a count. */
  readonly events?: readonly EventNote[];
  /** Look again after this time, if nothing happens before. */
  readonly requeueAfterMs?: number;
}

/** A change that could not be made, and why. */
export interface Failure {
  readonly change: Change;
  readonly error: unknown;
}

export const NOTHING: Plan = { changes: [] };

/** Who needs more does a part and is looked at again. */
export const MAX_CHANGES = 100;

/** Our own mistakes fail before anything is written. */
export function checkPlan({ changes, requeueAfterMs = 0 }: Plan): void {
  invariant(changes.length <= MAX_CHANGES, `a plan has at most ${MAX_CHANGES} changes, this one has ${changes.length}`);
  invariant(requeueAfterMs >= 0 && Number.isFinite(requeueAfterMs), 'requeueAfterMs is a time to come');
  for (const change of changes) {
    invariant(change.why !== '', 'a change says why');
    if (change.do === 'create')
      invariant(change.object.metadata.name, 'the name of what is created is decided in the plan');
    if (change.do === 'delete') invariant(change.uid !== '', 'a delete names the uid');
  }
}
