/**
 * Records when the steps of a start become visible to a client of the API, with watches of VMs, pods and VMIs that are
 * open before the start, so that nothing polls meanwhile.
 */
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { PODS } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored, WatchEvent } from '#kube/meta.ts';
import { NAMESPACE } from './manifests.ts';

/** A step of a VM, which happens once. `gone`: the VM was deleted after its guest had ended. */
export type Mark = 'created' | 'podCreated' | 'podBound' | 'podRunning' | 'vmiRunning' | 'vmRunning' | 'gone';

const TIMEOUT_MS = 60_000;

export class StartMarks {
  readonly #seen = new Map<string, number>();
  readonly #waiting = new Map<string, () => void>();
  readonly #stopping = new AbortController();
  #failed: Error | undefined;

  /** Resolves when all watches are open. */
  static async open(client: Client): Promise<StartMarks> {
    const marks = new StartMarks();
    await Promise.all([
      marks.#watch(client, VIRTUAL_MACHINES, ({ type, object }) => {
        const { name } = object.metadata;
        if (type === 'ADDED') marks.#mark(name, 'created');
        if (object.status?.printableStatus === 'Running') marks.#mark(name, 'vmRunning');
        if (type === 'DELETED') marks.#mark(name, 'gone');
      }),
      marks.#watch(client, VIRTUAL_MACHINE_INSTANCES, ({ object }) => {
        if (object.status?.phase === 'Running') marks.#mark(object.metadata.name, 'vmiRunning');
      }),
      marks.#watch(client, PODS, ({ object }) => {
        const owner = object.metadata.ownerReferences?.[0]?.name ?? '';
        marks.#mark(owner, 'podCreated');
        if (object.spec?.nodeName !== undefined) marks.#mark(owner, 'podBound');
        if (object.status?.phase === 'Running') marks.#mark(owner, 'podRunning');
      }),
    ]);
    return marks;
  }

  /** Returns `performance.now()` of when the step was first seen, and waits for it if necessary. */
  async timeOf(vm: string, mark: Mark): Promise<number> {
    const key = `${vm}/${mark}`;
    const timer = setTimeout(() => this.#fail(new Error(`VM ${vm} did not reach ${mark} in time`)), TIMEOUT_MS);
    while (!this.#seen.has(key) && this.#failed === undefined) {
      await new Promise<void>((resolve) => this.#waiting.set(key, resolve));
    }
    clearTimeout(timer);
    const at = this.#seen.get(key);
    if (at === undefined) throw this.#failed!;
    return at;
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #watch<T extends KubeObject>(
    client: Client,
    type: ResourceType<T>,
    onEvent: (event: WatchEvent<Stored<T>>) => void,
  ): Promise<void> {
    const { signal } = this.#stopping;
    const list = await client.list(type, { namespace: NAMESPACE, limit: 1 });
    const { resourceVersion } = list.metadata;
    const events = client.watch(type, { namespace: NAMESPACE, resourceVersion, timeoutSeconds: 600, signal });
    void (async () => {
      try {
        for await (const event of events) onEvent(event);
        this.#fail(new Error(`The watch of ${type.plural} ended`));
      } catch (error) {
        this.#fail(error as Error);
      }
    })();
  }

  #mark(vm: string, mark: Mark): void {
    const key = `${vm}/${mark}`;
    if (this.#seen.has(key)) return;
    this.#seen.set(key, performance.now());
    this.#waiting.get(key)?.();
  }

  #fail(error: Error): void {
    if (this.#stopping.signal.aborted) return;
    this.#failed ??= error;
    for (const wake of this.#waiting.values()) wake();
  }
}
