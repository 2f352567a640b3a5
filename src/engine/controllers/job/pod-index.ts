/**
 * Indexes pods by the Job that controls them. Pods without a controller are indexed by namespace and by the Job that their
 * labels name. A reconcile need not iterate over all pods.
 */
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { BatchJob } from '#engine/controllers/job/kinds.ts';
import { NAME_LABEL } from '#engine/registry/kinds/job/job-labels.ts';
import { controllerOf, type OwnerReference, type Stored } from '#kube/meta.ts';

/** Returns the reference to the Job that controls the pod, or undefined. */
export function jobReference(pod: EnginePod): OwnerReference | undefined {
  const reference = controllerOf(pod);
  return reference?.kind === 'Job' && reference.apiVersion.startsWith('batch/') ? reference : undefined;
}

export class PodIndex {
  readonly #informer: Informer<EnginePod>;
  /** Keys of pods by the uid of their Job. */
  readonly #owned = new Map<string, Set<string>>();
  /** Keys of pods without a controller, by namespace and by the key of the Job that their labels name. */
  readonly #uncontrolled = new Map<string, Set<string>>();

  constructor(informer: Informer<EnginePod>, { signal }: { signal: AbortSignal }) {
    this.#informer = informer;
    const unsubscribe = informer.onChange((key, change) => {
      if (change.old !== undefined) this.#remove(key, change.old);
      if (change.new !== undefined) this.#add(key, change.new);
    });
    signal.addEventListener('abort', unsubscribe, { once: true });
  }

  ownedBy(jobUid: string): Stored<EnginePod>[] {
    return this.#podsOf(this.#owned.get(jobUid));
  }

  /** Returns the pods without a controller that the Job may select. Only a manual selector can select pods without its label. */
  uncontrolledFor({ metadata: { namespace = '', name }, spec }: Stored<BatchJob>): Stored<EnginePod>[] {
    return this.#podsOf(this.#uncontrolled.get(spec.manualSelector === true ? namespace : keyOf({ namespace, name })));
  }

  isTaken(namespace: string | undefined, name: string): boolean {
    return this.#informer.get(keyOf({ namespace, name })) !== undefined;
  }

  #podsOf(keys: ReadonlySet<string> | undefined): Stored<EnginePod>[] {
    return [...(keys ?? [])].map((key) => this.#informer.get(key)).filter((pod) => pod !== undefined);
  }

  #add(key: string, pod: Stored<EnginePod>): void {
    for (const [map, value] of this.#indexEntries(pod)) {
      const keys = map.get(value);
      if (keys === undefined) map.set(value, new Set([key]));
      else keys.add(key);
    }
  }

  #remove(key: string, pod: Stored<EnginePod>): void {
    for (const [map, value] of this.#indexEntries(pod)) {
      const keys = map.get(value);
      if (keys?.delete(key) && keys.size === 0) map.delete(value);
    }
  }

  #indexEntries(pod: Stored<EnginePod>): [Map<string, Set<string>>, value: string][] {
    const job = jobReference(pod);
    if (job !== undefined) return [[this.#owned, job.uid]];
    if (controllerOf(pod) !== undefined) return [];
    const { namespace = '', labels } = pod.metadata;
    const name = labels?.[NAME_LABEL];
    const named = name === undefined ? [] : [keyOf({ namespace, name })];
    return [namespace, ...named].map((value) => [this.#uncontrolled, value]);
  }
}

/** Returns the key of the Job that controls the pod, or undefined. */
export function jobKeyOf(pod: Stored<EnginePod>): string | undefined {
  const reference = jobReference(pod);
  return reference && keyOf({ namespace: pod.metadata.namespace, name: reference.name });
}
