/**
 * Remembers the final state of launcher pods that are gone: an evicted pod is removed as soon as its guest has shut
 * down, and the next reconcile may come too late to see how it ended. Kept in memory; a restart loses only that detail.
 */
import { APP_LABEL, CREATED_BY_LABEL, LAUNCHER_APP } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export const MAX_REMEMBERED = 1000;

export class EndedPods {
  /** By the keys of the pods, oldest first. An instance that was migrated has several pods. */
  readonly #pods = new Map<string, Stored<Pod>>();

  constructor(pods: Pick<Informer<Pod>, 'onChange'>, { signal }: { signal: AbortSignal }) {
    const unsubscribe = pods.onChange((_, change) => {
      if (change.new === undefined && change.old !== undefined) this.#remember(change.old);
    });
    signal.addEventListener('abort', unsubscribe, { once: true });
  }

  /** Returns the ended pod of the key, if it belonged to the instance. */
  find(key: string, { metadata }: Pick<Stored, 'metadata'>): Stored<Pod> | undefined {
    const pod = this.#pods.get(key);
    return pod?.metadata.labels?.[CREATED_BY_LABEL] === metadata.uid ? pod : undefined;
  }

  forget(key: string): void {
    this.#pods.delete(key);
  }

  #remember(pod: Stored<Pod>): void {
    if (pod.metadata.labels?.[APP_LABEL] !== LAUNCHER_APP || !hasEnded(pod)) return;
    this.#pods.set(objectKey(pod), pod);
    if (this.#pods.size <= MAX_REMEMBERED) return;
    for (const oldest of this.#pods.keys()) {
      this.#pods.delete(oldest);
      return;
    }
  }
}
