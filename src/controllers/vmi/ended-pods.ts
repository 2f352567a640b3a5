/**
 * Remembers the final state of launcher pods that are gone: an evicted pod is removed as soon as its guest has shut
 * down, and the next reconcile may come too late to see how it ended. Kept in memory while the instance exists; a restart
 * loses only that detail.
 */
import { APP_LABEL, CREATED_BY_LABEL, LAUNCHER_APP } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export const MAX_REMEMBERED = 1000;

interface EndedPodsOptions {
  readonly vmis: Pick<Informer<VirtualMachineInstance>, 'onChange'>;
  readonly hasInstance: (uid: string) => boolean;
  readonly signal: AbortSignal;
}

export class EndedPods {
  /** By the keys of the pods, oldest first. An instance that was migrated has several pods. */
  readonly #pods = new Map<string, Stored<Pod>>();

  readonly #hasInstance: (uid: string) => boolean;

  constructor(pods: Pick<Informer<Pod>, 'onChange'>, { vmis, hasInstance, signal }: EndedPodsOptions) {
    this.#hasInstance = hasInstance;
    const subscriptions = [
      pods.onChange((_, change) => {
        if (change.new === undefined && change.old !== undefined) this.#remember(change.old);
      }),
      vmis.onChange((_, change) => {
        if (change.new === undefined && change.old !== undefined) this.#forgetInstance(change.old.metadata.uid);
      }),
    ];
    const unsubscribe = () => subscriptions.forEach((end) => end());
    signal.addEventListener('abort', unsubscribe, { once: true });
  }

  /** Returns the ended pod of the key, if it belonged to the instance. */
  find(key: string, { metadata }: Pick<Stored, 'metadata'>): Stored<Pod> | undefined {
    const pod = this.#pods.get(key);
    return pod !== undefined && instanceUidOf(pod) === metadata.uid ? pod : undefined;
  }

  forget(key: string): void {
    this.#pods.delete(key);
  }

  #forgetInstance(uid: string): void {
    for (const [key, pod] of this.#pods) if (instanceUidOf(pod) === uid) this.#pods.delete(key);
  }

  #remember(pod: Stored<Pod>): void {
    if (pod.metadata.labels?.[APP_LABEL] !== LAUNCHER_APP || !hasEnded(pod)) return;
    if (!this.#hasInstance(instanceUidOf(pod))) return;
    this.#pods.set(objectKey(pod), pod);
    if (this.#pods.size <= MAX_REMEMBERED) return;
    for (const oldest of this.#pods.keys()) {
      this.#pods.delete(oldest);
      return;
    }
  }
}

function instanceUidOf({ metadata }: Stored<Pod>): string {
  return metadata.labels?.[CREATED_BY_LABEL] ?? '';
}
