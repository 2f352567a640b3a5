/**
 * A plane in memory in which migrations run to their end: the API, and simple versions of the scheduler, the agents and
 * the controller of instances. The migration controller can crash after any write: the write is done, but the
 * controller does not see its result.
 */
import { isMigrating, type MigrationProgress } from '#api/migration/migration-state.ts';
import { MIGRATION_ABORTED_REASON, MIGRATION_COMMITTED_CONDITION, MIGRATED_REASON } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client, ObjectName } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { concludeMigration } from '#controllers/migration/begin.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import { NOW_MS, TARGET } from '#controllers/migration/testing/migration-world.ts';
import { createMigrationObserver } from '#controllers/migration/observe-migration.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { createLog } from '#lib/log.ts';
import { applyPlan, isStale, PlanFailure, type ApplyContext } from '#runtime/apply.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { EventNote } from '#runtime/events.ts';

class Crash extends Error {
  override name = 'Crash';
}

const MAX_ROUNDS = 60;

/** The fate of the guest after the announcement; `silent`: no agent reports anything. */
export type GuestFate = 'commits' | 'fails' | 'guest-ends' | 'silent';

export class MigrationPlane {
  readonly api = new FakeApi();
  readonly events: EventNote[] = [];
  fate: GuestFate = 'commits';
  /** Number of writes of the migration controller. */
  writes = 0;
  /** Called after each write of the migration controller. */
  onWrite: () => void = () => undefined;
  /** Called when the migration controller has crashed. */
  onCrash: () => void = () => undefined;
  #writesLeft = Infinity;
  readonly #observe = createMigrationObserver(this.#parts());

  crashAfter(writes: number): void {
    this.#writesLeft = writes;
  }

  /** Runs until no component has anything to do. A controller that crashed starts again. */
  async settle(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const before = this.api.revision;
      for (const migration of this.api.all(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS))
        await this.#reconcile(objectKey(migration));
      this.#schedule();
      for (const vmi of this.api.all(VIRTUAL_MACHINE_INSTANCES)) this.#stepAgents(vmi);
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
    const world = await this.#observe(key, { signal });
    if (world === undefined) return;
    const subject = { type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, object: world.migration };
    const { client, clock, log } = this.#parts();
    const events = { record: (_: KubeObject, note: EventNote) => void this.events.push(note) };
    const context: ApplyContext = { client, clock, log, events, caches: [], fieldManager: 'test', signal };
    const plan = decideMigration(world);
    const failures = await applyPlan(plan, subject, context).then(
      () => [],
      (error: unknown) => {
        if (!(error instanceof PlanFailure)) throw error;
        if (error.failures.some((failure) => failure.error instanceof Crash)) throw new Crash();
        return error.failures;
      },
    );
    if (plan.continueOnError === true)
      await applyPlan({ changes: [], status: concludeMigration(world, failures) }, subject, context);
  }

  #schedule(): void {
    for (const pod of this.api.all(PODS)) {
      if (!pod.spec.nodeName) this.api.update(PODS, { ...pod, spec: { ...pod.spec, nodeName: TARGET } });
    }
  }

  /** Does one step of the agents and of the controller of instances. */
  #stepAgents(vmi: Stored<VirtualMachineInstance>): void {
    const { migrationState: state, migrationProgress: progress } = vmi.status ?? {};
    if (state?.migrationUid === undefined) return;
    const { namespace } = vmi.metadata;
    const podOf = (name = '') => this.api.peek(PODS, keyOf({ namespace, name }));
    const [source, target] = [podOf(state.sourcePod), podOf(state.targetPod)];
    if (!isMigrating(state)) {
      const nodeName = state.failed === true ? state.sourceNode : state.targetNode;
      return this.#writeStatus(VIRTUAL_MACHINE_INSTANCES, vmi, { ...vmi.status, nodeName });
    }
    if (source === undefined || target === undefined || this.fate === 'silent') return;
    const report = (phase: MigrationProgress['phase'], message?: string) => {
      const migrationProgress = { migrationUid: state.migrationUid, phase, ...(message ? { message } : {}) };
      this.#writeStatus(VIRTUAL_MACHINE_INSTANCES, vmi, { ...vmi.status, migrationProgress });
    };
    if (target.status?.phase !== 'Running') {
      if (target.status?.phase !== 'Failed') this.#writeStatus(PODS, target, { phase: 'Running' });
      return;
    }
    const phase = progress?.migrationUid === state.migrationUid ? progress?.phase : undefined;
    if (phase === undefined) return report('Copying');
    if (phase !== 'Copying') return;
    if (state.abortRequested === true) return report('Failed', 'aborted on request');
    if (this.fate === 'commits') return this.#commit(source, target, state.migrationUid);
    if (this.fate === 'fails') {
      this.#writeStatus(PODS, target, { phase: 'Failed', reason: MIGRATION_ABORTED_REASON });
      return report('Failed', 'the stream broke');
    }
    this.#writeStatus(PODS, source, { phase: 'Succeeded' });
  }

  #commit(source: Stored<Pod>, target: Stored<Pod>, message: string): void {
    const committed = { type: MIGRATION_COMMITTED_CONDITION, status: 'True' as const, message };
    this.#writeStatus(PODS, source, { phase: 'Succeeded', reason: MIGRATED_REASON, conditions: [committed] });
    const ready = { type: 'Ready', status: 'True' as const };
    this.#writeStatus(PODS, target, { phase: 'Running', conditions: [committed, ready] });
  }

  #writeStatus(type: ResourceType, object: Stored, status: object): void {
    if (deepEqual(object['status'], status)) return;
    const { resourceVersion: _, ...metadata } = object.metadata;
    this.api.update(type, { ...object, metadata, status }, { subresource: 'status' });
  }

  #write<T>(write: () => T): Promise<T> {
    if (this.#writesLeft <= 0) return Promise.reject(new Crash());
    try {
      const before = this.api.revision;
      const answer = write();
      if (this.api.revision !== before) this.writes++;
      this.onWrite();
      return --this.#writesLeft <= 0 ? Promise.reject(new Crash()) : Promise.resolve(answer);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #parts(): ControllerParts {
    const { api } = this;
    const patched = (type: ResourceType, name: ObjectName, patch: { type: string; body: unknown }) => {
      const old = api.get(type, keyOf(name));
      return (patch.type === 'json' ? applyJsonPatch(old, patch.body) : applyMergePatch(old, patch.body)) as KubeObject;
    };
    const readLater = <T>(read: () => T) => new Promise<T>((resolve) => resolve(read()));
    const client = {
      get: (type: ResourceType, name: ObjectName) => readLater(() => api.get(type, keyOf(name))),
      create: (type: ResourceType, object: KubeObject) => this.#write(() => api.create(type, object)),
      update: (type: ResourceType, object: KubeObject, options: object) =>
        this.#write(() => api.update(type, object, options)),
      patch: (type: ResourceType, name: ObjectName, patch: { type: string; body: unknown }, options: object) =>
        this.#write(() => api.update(type, patched(type, name, patch), options)),
      delete: (type: ResourceType, name: ObjectName, options: object) =>
        this.#write(() => void api.delete(type, keyOf(name), options)),
    } as unknown as Client;
    const clock = { now: () => NOW_MS, elapsed: () => 0, after: () => () => undefined };
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
