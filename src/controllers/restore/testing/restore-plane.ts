/**
 * A plane in memory in which restores run to their end: the API, and simple versions of the other controllers. The
 * restore controller can crash after any write: the write is done, but the controller does not see its result.
 */
import { VM_RESTORE_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { hasRestoreBegun, isRestoreFinished, VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import type { Client, ObjectName } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { firmwareOf } from '#controllers/restore/build-restored-vm.ts';
import { concludeRestore, decideRestore } from '#controllers/restore/decide-restore.ts';
import { createRestoreObserver } from '#controllers/restore/observe-restore.ts';
import { NOW_MS } from '#controllers/restore/testing/restore-world.ts';
import { invalid } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '#kube/core-kinds.ts';
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

export class RestorePlane {
  readonly api = new FakeApi();
  readonly events: EventNote[] = [];
  /** The API rejects patches of this kind as invalid. */
  invalidKind?: string;
  /** Number of writes of the restore controller. */
  writes = 0;
  /** Called when the restore controller has crashed. */
  onCrash: () => void = () => undefined;
  #writesLeft = Infinity;
  #uuids = 0;
  readonly #observe = createRestoreObserver(this.#parts());

  crashAfter(writes: number): void {
    this.#writesLeft = writes;
  }

  /** Runs until no controller has anything to do. A controller that crashed starts again. */
  async settle(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const before = this.api.revision;
      this.#runOtherControllers();
      for (const restore of this.api.all(VIRTUAL_MACHINE_RESTORES)) await this.#reconcile(objectKey(restore));
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
    const subject = { type: VIRTUAL_MACHINE_RESTORES, object: world.restore };
    const { client, clock, log } = this.#parts();
    const events = { record: (_: KubeObject, note: EventNote) => void this.events.push(note) };
    const context: ApplyContext = { client, clock, log, events, caches: [], fieldManager: 'test', signal };
    const plan = decideRestore(world);
    const failures = await applyPlan(plan, subject, context).then(
      () => [],
      (error: unknown) => {
        if (error instanceof PlanFailure && !error.failures.some((failure) => failure.error instanceof Crash)) {
          return error.failures;
        }
        throw error instanceof PlanFailure ? new Crash() : error;
      },
    );
    if (plan.continueOnError === true)
      await applyPlan({ changes: [], status: concludeRestore(world, failures) }, subject, context);
  }

  /** Runs the controllers of VMs and claims and the garbage collector once. */
  #runOtherControllers(): void {
    const restores = this.api.all(VIRTUAL_MACHINE_RESTORES);
    for (const vm of this.api.all(VIRTUAL_MACHINES)) {
      const holder = restores.find(
        ({ metadata, spec, ...restore }) =>
          !isRestoreFinished(restore) &&
          hasRestoreBegun(restore) &&
          spec.target.name === vm.metadata.name &&
          (metadata.deletionTimestamp === undefined || metadata.finalizers?.includes(VM_RESTORE_FINALIZER) === true),
      );
      const status = holder === undefined ? {} : { restoreInProgress: holder.metadata.name };
      if (!deepEqual(vm.status ?? {}, status))
        this.api.update(VIRTUAL_MACHINES, { ...vm, status }, { subresource: 'status' });
      const vmi = this.api.peek(VIRTUAL_MACHINE_INSTANCES, objectKey(vm));
      if (vmi !== undefined && vm.spec.runStrategy === 'Halted')
        this.api.remove(VIRTUAL_MACHINE_INSTANCES, nameOf(vmi));
    }
    for (const claim of this.api.all(PERSISTENT_VOLUME_CLAIMS)) this.#bind(claim);
    for (const type of [PERSISTENT_VOLUME_CLAIMS, VIRTUAL_MACHINE_IDENTITIES]) {
      for (const object of this.api.all<KubeObject>(type))
        if (this.#isGarbage(object)) this.api.remove(type, nameOf(object));
    }
  }

  #bind(claim: Stored): void {
    if (claim['status'] !== undefined) return;
    const { name, namespace, uid } = claim.metadata;
    const claimRef = { name, namespace, uid };
    const spec = { capacity: {}, accessModes: [], claimRef };
    const metadata = { name: `pvc-${uid}` };
    this.api.put(PERSISTENT_VOLUMES, { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec });
    this.api.update(PERSISTENT_VOLUME_CLAIMS, { ...claim, status: { phase: 'Bound' } }, { subresource: 'status' });
  }

  #isGarbage({ metadata }: KubeObject): boolean {
    const { ownerReferences: owners = [], namespace } = metadata;
    const exists = ({ kind, name, uid }: (typeof owners)[number]) => {
      const type = kind === VIRTUAL_MACHINES.kind ? VIRTUAL_MACHINES : VIRTUAL_MACHINE_RESTORES;
      return this.api.peek<KubeObject>(type, keyOf({ namespace, name }))?.metadata.uid === uid;
    };
    return owners.length > 0 && !owners.some(exists);
  }

  #write<T>(write: () => T): Promise<T> {
    if (this.#writesLeft <= 0) return Promise.reject(new Crash());
    try {
      const answer = write();
      this.writes++;
      return --this.#writesLeft <= 0 ? Promise.reject(new Crash()) : Promise.resolve(answer);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Gives a VM without a uuid one, like the webhook. */
  #admit(type: ResourceType, object: KubeObject): KubeObject {
    if (type.kind !== VIRTUAL_MACHINES.kind || firmwareOf(object as VirtualMachine).uuid) return object;
    const path = '/spec/template/spec/domain/firmware/uuid';
    return applyJsonPatch(object, [{ op: 'add', path, value: `made-${++this.#uuids}` }]) as KubeObject;
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
      create: (type: ResourceType, object: KubeObject) =>
        this.#write(() => api.create(type, this.#admit(type, object))),
      update: (type: ResourceType, object: KubeObject, options: object) =>
        this.#write(() => api.update(type, object, options)),
      patch: (type: ResourceType, name: ObjectName, patch: { type: string; body: unknown }, options: object) =>
        this.#write(() => {
          if (type.kind === this.invalidKind) throw invalid(type, name.name, []);
          return api.update(type, patched(type, name, patch), options);
        }),
      delete: (type: ResourceType, name: ObjectName, options: object) =>
        this.#write(() => void api.delete(type, keyOf(name), options)),
    } as unknown as Client;
    const clock = { now: () => NOW_MS, elapsed: () => 0, after: () => () => undefined };
    const log = createLog('error', { write: () => undefined });
    const informer = (type: ResourceType) => cacheOf(api, type);
    return { client, clock, log, informer } as unknown as ControllerParts;
  }
}

function nameOf({ metadata: { namespace, name = '' } }: KubeObject): ObjectName {
  return { namespace, name };
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
