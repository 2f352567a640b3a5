/** Pods that fit nowhere, or wait for their volumes, and what for. */
import type { Pod } from '#engine/controllers/kinds.ts';
import { type Happening, mayHelp, type WaitingPod } from '#engine/controllers/scheduler/wake.ts';

interface Kept extends WaitingPod {
  /** When people were last told why. */
  readonly toldMs: number;
}

export class WaitingPods {
  readonly #pods = new Map<string, Kept>();

  put(key: string, pod: WaitingPod, toldMs: number): void {
    this.#pods.set(key, { ...pod, toldMs });
  }

  toldMs(key: string): number | undefined {
    return this.#pods.get(key)?.toldMs;
  }

  delete(key: string): void {
    this.#pods.delete(key);
  }

  /** Those that may fit now, the most important first. */
  helpedBy(happening: Happening): string[] {
    const helped: [string, Pod][] = [];
    for (const [key, waiting] of this.#pods) if (mayHelp(happening, waiting)) helped.push([key, waiting.facts.pod]);
    return inOrder(helped);
  }
}

/** By priority, then by age: the queue behind is worked off in this order. */
export function inOrder(pods: readonly (readonly [key: string, pod: Pod])[]): string[] {
  const age = ({ metadata }: Pod) => metadata.creationTimestamp ?? '';
  const sorted = pods.toSorted(([, a], [, b]) => {
    const difference = (b.spec.priority ?? 0) - (a.spec.priority ?? 0);
    return difference !== 0 ? difference : age(a) < age(b) ? -1 : age(a) > age(b) ? 1 : 0;
  });
  return sorted.map(([key]) => key);
}
