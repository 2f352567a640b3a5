/**
 * Remembers how launcher pods ended that are gone: who evicts a pod gets it removed as soon as its guest has shut down,
 * and the next look may come too late to see how. Nothing but that detail is lost with it.
 */
import { APP_LABEL, CREATED_BY_LABEL, LAUNCHER_APP } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export const MAX_REMEMBERED = 1000;

export class EndedPods {
  /** By the uid of their instance, oldest first. */
  readonly #pods = new Map<string, Stored<Pod>>();

  constructor(pods: Pick<Informer<Pod>, 'onChange'>, { signal }: { signal: AbortSignal }) {
    const leave = pods.onChange((_, change) => {
      if (change.new === undefined && change.old !== undefined) this.#remember(change.old);
    });
    signal.addEventListener('abort', leave, { once: true });
  }

  of(vmiUid: string): Stored<Pod> | undefined {
    return this.#pods.get(vmiUid);
  }

  forget(vmiUid: string): void {
    this.#pods.delete(vmiUid);
  }

  #remember(pod: Stored<Pod>): void {
    const uid = pod.metadata.labels?.[CREATED_BY_LABEL];
    if (uid === undefined || pod.metadata.labels?.[APP_LABEL] !== LAUNCHER_APP || !hasEnded(pod)) return;
    this.#pods.set(uid, pod);
    if (this.#pods.size <= MAX_REMEMBERED) return;
    for (const oldest of this.#pods.keys()) {
      this.#pods.delete(oldest);
      return;
    }
  }
}
