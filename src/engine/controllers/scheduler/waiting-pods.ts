/** Pods that fit on no node or wait for their volumes, with the causes. */
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { type ClusterEvent, mayHelp, type WaitingPod } from '#engine/controllers/scheduler/wake.ts';

interface WaitingEntry extends WaitingPod {
  /** The time of the last Event that reported the causes. */
  readonly reportedMs: number;
}

export class WaitingPods {
  readonly #pods = new Map<string, WaitingEntry>();

  put(key: string, pod: WaitingPod, reportedMs: number): void {
    this.#pods.set(key, { ...pod, reportedMs });
  }

  reportedMs(key: string): number | undefined {
    return this.#pods.get(key)?.reportedMs;
  }

  delete(key: string): void {
    this.#pods.delete(key);
  }

  /** Returns the keys of pods that may fit after this event, in the order of their priority. */
  podsHelpedBy(event: ClusterEvent): string[] {
    const helped: [string, EnginePod][] = [];
    for (const [key, waiting] of this.#pods) if (mayHelp(event, waiting)) helped.push([key, waiting.facts.pod]);
    return sortByPriority(helped);
  }
}

/** Sorts by priority, then by age. The work queue keeps this order. */
export function sortByPriority(pods: readonly (readonly [key: string, pod: EnginePod])[]): string[] {
  const age = ({ metadata }: EnginePod) => metadata.creationTimestamp ?? '';
  const sorted = pods.toSorted(([, a], [, b]) => {
    const difference = (b.spec.priority ?? 0) - (a.spec.priority ?? 0);
    return difference !== 0 ? difference : age(a) < age(b) ? -1 : age(a) > age(b) ? 1 : 0;
  });
  return sorted.map(([key]) => key);
}
