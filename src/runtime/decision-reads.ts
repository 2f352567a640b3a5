/**
 * The rule that whatever a decision reads must also wake its controller. Without it a controller that waits for an object
 * sleeps on when the object changes, until something else happens to wake it.
 *
 *   observe and decide read a kind ─┬─ a source follows it ───► its changes wake the controller
 *                                   ├─ a Recheck names it ────► this name is looked at again after `everyMs`
 *                                   └─ neither ───────────────► a mistake: logged, and looked at again all the same;
 *                                                               tests fail, and say what to declare
 *
 * It holds for every controller (controller.ts) and for the loops of the node agent, which have queues of their own.
 *
 * This covers kinds. Whether a source wakes the right names is checked by RunningController.overdue in tests.
 */
import { listenToReads } from '#client/read-scope.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import type { WorkResult } from '#runtime/work-queue.ts';
import { invariant } from '#lib/invariant.ts';

/** For the type of a Recheck: any kind that has no source. */
export const ANY_KIND = 'any kind';

/** A kind that decisions read and no source follows. Every reconcile that reads it is repeated. */
export interface Recheck {
  readonly type: ResourceType | typeof ANY_KIND;
  readonly everyMs: number;
  /** Why its changes are not followed. */
  readonly because: string;
}

/** The longest time for which a change may stay unnoticed. */
export const MAX_RECHECK_MS = 60_000;

/** What a controller declares of its reads. */
export interface DeclaredReads {
  readonly name: string;
  /** Kinds whose changes wake the controller. */
  readonly followed: readonly ResourceType[];
  readonly rechecks: readonly Recheck[];
  /** Called once for each kind that is read against the rule. */
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
      invariant(because !== '', `a Recheck of ${name} says why it does not follow the kind`);
    }
    this.#name = name;
    this.#followed = new Set(followed.map(groupResource));
    this.#rechecks = new Map(rechecks.map(({ type, everyMs }) => [nameOf(type), everyMs]));
  }

  /** Kinds that decisions have read so far. */
  get read(): ReadonlySet<string> {
    return this.#read;
  }

  /** Reads that broke the rule, one message for each kind. */
  get violations(): readonly string[] {
    return [...this.#violations.values()];
  }

  /** Runs one turn of a queue under the rule: a turn that reads a kind with a Recheck comes again in time. */
  async run(turn: () => Promise<WorkResult | void>): Promise<WorkResult> {
    const reads = this.begin();
    const result = (await reads.during(turn)) ?? {};
    return { ...result, afterMs: earliest(result.afterMs, reads.recheckMs) };
  }

  /** Starts to note what one reconcile reads. */
  begin(): DecisionReads {
    return new DecisionReads((type) => this.#recheckMs(type));
  }

  /** Returns when a read of the kind is to be repeated, or undefined where its changes wake the controller. */
  #recheckMs(type: ResourceType): number | undefined {
    const kind = groupResource(type);
    this.#read.add(kind);
    if (this.#followed.has(kind)) return undefined;
    const everyMs = this.#rechecks.get(kind) ?? this.#rechecks.get(ANY_KIND);
    if (everyMs !== undefined) return everyMs;
    if (!this.#violations.has(kind)) this.#violate(kind);
    return MAX_RECHECK_MS;
  }

  #violate(kind: string): void {
    const message =
      `Controller "${this.#name}" reads ${kind}, and no change of one wakes it; ` +
      `add source(informer(...), keysOf) to its sources, where keysOf returns every name whose decision reads the ` +
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
    return listenToReads((type) => {
      this.#recheckMs = earliest(this.#recheckMs, this.#recheckMsOf(type));
    }, work);
  }

  /** When the name has to be looked at again because of what was read; undefined where changes wake the controller. */
  get recheckMs(): number | undefined {
    return this.#recheckMs;
  }
}

/** Returns the smaller of two times, of which either may be missing. */
export function earliest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

function nameOf(type: Recheck['type']): string {
  return type === ANY_KIND ? ANY_KIND : groupResource(type);
}
