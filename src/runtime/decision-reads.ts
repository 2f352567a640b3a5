/**
 * The rule that changes of every kind that a decision reads must trigger the controller. Otherwise a controller that
 * waits for an object would not notice its change until something else triggers it.
 *
 *   observe and decide read a kind ─┬─ it has a source ─────► its changes trigger the controller
 *                                   ├─ it has a Recheck ────► the key is reconciled again after `everyMs`
 *                                   └─ neither ─────────────► a bug: logged, and reconciled again anyway; tests fail and
 *                                                             say what to declare
 *
 * Applies to all controllers (controller.ts) and to the loops of the node agent, which have their own queues.
 *
 * This checks kinds. Tests check with RunningController.findOverdue whether a source enqueues the right keys.
 */
import { observeReads } from '#client/read-scope.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import type { WorkResult } from '#runtime/work-queue.ts';
import { invariant } from '#lib/invariant.ts';

/** The type of a Recheck for any kind without a source. */
export const ANY_KIND = 'any kind';

/** A kind that decisions read and that has no source. Every reconcile that reads it is repeated. */
export interface Recheck {
  readonly type: ResourceType | typeof ANY_KIND;
  readonly everyMs: number;
  /** The reason why it has no source. */
  readonly because: string;
}

/** The longest time that a change may stay unnoticed. */
export const MAX_RECHECK_MS = 60_000;

/** The reads that a controller declares. */
export interface DeclaredReads {
  readonly name: string;
  /** Kinds whose changes trigger the controller. */
  readonly followed: readonly ResourceType[];
  readonly rechecks: readonly Recheck[];
  /** Called once for each kind that is read without a declaration. */
  onViolation?(message: string): void;
}

export class ReadRules {
  readonly #name: string;
  readonly #onViolation: (message: string) => void;
  readonly #followed: ReadonlySet<string>;
  readonly #rechecks: ReadonlyMap<string, number>;
  readonly #violations = new Map<string, string>();
  readonly #read = new Set<string>();

  constructor({ name, followed, rechecks, onViolation = () => undefined }: DeclaredReads) {
    this.#onViolation = onViolation;
    for (const { everyMs, because } of rechecks) {
      invariant(everyMs > 0 && everyMs <= MAX_RECHECK_MS, `a Recheck of ${name} is within ${MAX_RECHECK_MS} ms`);
      invariant(because !== '', `a Recheck of ${name} says why the kind has no source`);
    }
    this.#name = name;
    this.#followed = new Set(followed.map(groupResource));
    this.#rechecks = new Map(rechecks.map(({ type, everyMs }) => [nameOf(type), everyMs]));
  }

  /** Kinds that decisions have read so far. */
  get read(): ReadonlySet<string> {
    return this.#read;
  }

  /** Violations of the rule, one message per kind. */
  get violations(): readonly string[] {
    return [...this.#violations.values()];
  }

  /** Runs the work of a queue under the rule: if it reads a kind with a Recheck, it is repeated in time. */
  async run(work: () => Promise<WorkResult | void>): Promise<WorkResult> {
    const reads = this.begin();
    const result = (await reads.during(work)) ?? {};
    return { ...result, afterMs: earliest(result.afterMs, reads.recheckMs) };
  }

  /** Starts to record the reads of one reconcile. */
  begin(): DecisionReads {
    return new DecisionReads((type) => this.#recheckMs(type));
  }

  /** Returns when a read of the kind must be repeated, or undefined if its changes trigger the controller. */
  #recheckMs(type: ResourceType): number | undefined {
    const kind = groupResource(type);
    this.#read.add(kind);
    if (this.#followed.has(kind)) return undefined;
    const everyMs = this.#rechecks.get(kind) ?? this.#rechecks.get(ANY_KIND);
    if (everyMs !== undefined) return everyMs;
    if (!this.#violations.has(kind)) this.#recordViolation(kind);
    return MAX_RECHECK_MS;
  }

  #recordViolation(kind: string): void {
    const message =
      `Controller "${this.#name}" reads ${kind}, but their changes do not trigger it; ` +
      `add source(informer(...), keysOf) to its sources, where keysOf returns every key whose decision reads the ` +
      `object, or add a Recheck of the kind to its rechecks`;
    this.#violations.set(kind, message);
    this.#onViolation(message);
  }
}

/** The reads of one reconcile. */
export class DecisionReads {
  readonly #recheckMsOf: (type: ResourceType) => number | undefined;
  #recheckMs: number | undefined;

  constructor(recheckMsOf: (type: ResourceType) => number | undefined) {
    this.#recheckMsOf = recheckMsOf;
  }

  /** Runs a part of the decision. */
  during<T>(work: () => T): T {
    return observeReads((type) => {
      this.#recheckMs = earliest(this.#recheckMs, this.#recheckMsOf(type));
    }, work);
  }

  /**
   * The time after which the key must be reconciled again; undefined if changes of all read kinds trigger the
   * controller.
   */
  get recheckMs(): number | undefined {
    return this.#recheckMs;
  }
}

/** Returns the smaller of two times, each of which may be undefined. */
export function earliest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

function nameOf(type: Recheck['type']): string {
  return type === ANY_KIND ? ANY_KIND : groupResource(type);
}
