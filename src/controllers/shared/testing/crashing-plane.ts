/**
 * A plane in memory in which one controller runs to the end of its work: the API, and caches that always have the latest
 * objects. The controller can crash after any write: the write is done, but the controller does not see its result.
 * Subclasses simulate the other components.
 */
import type { Client, ObjectName } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { createLog } from '#lib/log.ts';
import { applyPlan, isStale, PlanFailure, type ApplyContext } from '#runtime/apply.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { EventNote } from '#runtime/events.ts';
import type { FailedChange, Plan } from '#runtime/plan.ts';

class Crash extends Error {
  override name = 'Crash';
}

const MAX_ROUNDS = 60;

/** The controller under test, as in its ControllerDefinition. */
export interface CrashingController<World> {
  readonly type: ResourceType;
  createObserver(parts: ControllerParts): (key: string, options: { signal: AbortSignal }) => Promise<World | undefined>;
  subjectOf(world: World): Stored;
  decide(world: World): Plan;
  conclude(world: World, failures: readonly FailedChange[]): Plan['status'];
}

export abstract class CrashingPlane<World> {
  readonly api = new FakeApi();
  readonly events: EventNote[] = [];
  /** Number of successful writes of the controller. */
  writes = 0;
  /** Called after each write of the controller. */
  onWrite: () => void = () => undefined;
  /** Called when the controller has crashed. */
  onCrash: () => void = () => undefined;
  #writesLeft = Infinity;
  readonly #controller: CrashingController<World>;
  readonly #parts: ControllerParts;
  readonly #observe: ReturnType<CrashingController<World>['createObserver']>;

  constructor(controller: CrashingController<World>, nowMs: number) {
    this.#controller = controller;
    this.#parts = this.#createParts(nowMs);
    this.#observe = controller.createObserver(this.#parts);
  }

  /** Does one step of all other components. */
  protected abstract runOthers(): void;

  /** Changes an object that the controller creates, like the webhook. */
  protected admit(_: ResourceType, object: KubeObject): KubeObject {
    return object;
  }

  /** Throws the error of a patch that the API refuses. */
  protected checkPatch?(type: ResourceType, name: ObjectName): void;

  crashAfter(writes: number): void {
    this.#writesLeft = writes;
  }

  /** Runs until no component has anything to do. A controller that crashed starts again. */
  async settle(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const before = this.api.revision;
      for (const object of this.api.all(this.#controller.type)) await this.#reconcile(objectKey(object));
      this.runOthers();
      if (this.api.revision === before) return;
    }
    throw new Error(`Cannot settle: objects still change after ${MAX_ROUNDS} rounds`);
  }

  async #reconcile(key: string): Promise<void> {
    try {
      await this.#reconcileOnce(key);
    } catch (error) {
      if (error instanceof Crash) {
        this.#writesLeft = Infinity;
        this.onCrash();
      } else if (!isStale(error)) throw error;
    }
  }

  /** Reconciles once, like the runtime. */
  async #reconcileOnce(key: string): Promise<void> {
    const { signal } = new AbortController();
    const { type, subjectOf, decide, conclude } = this.#controller;
    const world = await this.#observe(key, { signal });
    if (world === undefined) return;
    const subject = { type, object: subjectOf(world) };
    const { client, clock, log } = this.#parts;
    const events = { record: (_: KubeObject, note: EventNote) => void this.events.push(note) };
    const context: ApplyContext = { client, clock, log, events, caches: [], fieldManager: 'test', signal };
    const plan = decide(world);
    const failures = await applyPlan(plan, subject, context).then(
      () => [],
      (error: unknown) => {
        if (!(error instanceof PlanFailure)) throw error;
        if (error.failures.some((failure) => failure.error instanceof Crash)) throw new Crash();
        return error.failures;
      },
    );
    if (plan.continueOnError === true)
      await applyPlan({ changes: [], status: conclude(world, failures) }, subject, context);
  }

  #write<T>(write: () => T): Promise<T> {
    if (this.#writesLeft <= 0) return Promise.reject(new Crash());
    try {
      const answer = write();
      this.writes++;
      this.onWrite();
      return --this.#writesLeft <= 0 ? Promise.reject(new Crash()) : Promise.resolve(answer);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #createParts(nowMs: number): ControllerParts {
    const { api } = this;
    const patched = (type: ResourceType, name: ObjectName, patch: { type: string; body: unknown }) => {
      const old = api.get(type, keyOf(name));
      return (patch.type === 'json' ? applyJsonPatch(old, patch.body) : applyMergePatch(old, patch.body)) as KubeObject;
    };
    const readLater = <T>(read: () => T) => new Promise<T>((resolve) => resolve(read()));
    const client = {
      get: (type: ResourceType, name: ObjectName) => readLater(() => api.get(type, keyOf(name))),
      create: (type: ResourceType, object: KubeObject) => this.#write(() => api.create(type, this.admit(type, object))),
      update: (type: ResourceType, object: KubeObject, options: object) =>
        this.#write(() => api.update(type, object, options)),
      patch: (type: ResourceType, name: ObjectName, patch: { type: string; body: unknown }, options: object) =>
        this.#write(() => {
          this.checkPatch?.(type, name);
          return api.update(type, patched(type, name, patch), options);
        }),
      delete: (type: ResourceType, name: ObjectName, options: object) =>
        this.#write(() => void api.delete(type, keyOf(name), options)),
    } as unknown as Client;
    const clock = { now: () => nowMs, elapsed: () => 0, after: () => () => undefined };
    const log = createLog('error', { write: () => undefined });
    const informer = (type: ResourceType) => cacheOf(api, type);
    return { client, clock, log, informer } as unknown as ControllerParts;
  }
}

/** Returns a cache that always has the latest objects. */
function cacheOf(api: FakeApi, type: ResourceType): Informer<KubeObject> {
  const indexes = new Map<string, (object: Stored) => readonly string[]>();
  return {
    get: (key: string) => api.peek(type, key),
    addIndex: (name: string, values: (object: Stored) => readonly string[]) => void indexes.set(name, values),
    byIndex: (name: string, value: string) =>
      api.all(type).filter((object) => indexes.get(name)?.(object).includes(value)),
  } as unknown as Informer<KubeObject>;
}
