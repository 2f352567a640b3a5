/**
 * Pods by the Job that controls them, and those that nobody controls by namespace and by the Job that their labels
 * name: so that no look goes through all.
 */
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { BatchJob } from '#engine/controllers/job/kinds.ts';
import { NAME_LABEL } from '#engine/registry/kinds/job/job-labels.ts';
import type { OwnerReference, Stored } from '#kube/meta.ts';

export function controllerOf({ metadata }: EnginePod): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller);
}

/** The reference to the Job that controls it, if it is one. */
export function jobReference(pod: EnginePod): OwnerReference | undefined {
  const reference = controllerOf(pod);
  return reference?.kind === 'Job' && reference.apiVersion.startsWith('batch/') ? reference : undefined;
}

export class PodIndex {
  readonly #informer: Informer<EnginePod>;
  /** Keys of pods by the uid of their Job. */
  readonly #owned = new Map<string, Set<string>>();
  /** Keys of pods by namespace, and by the key of the Job that they name. */
  readonly #loose = new Map<string, Set<string>>();

  constructor(informer: Informer<EnginePod>, { signal }: { signal: AbortSignal }) {
    this.#informer = informer;
    const leave = informer.onChange((key, change) => {
      if (change.old !== undefined) this.#remove(key, change.old);
      if (change.new !== undefined) this.#add(key, change.new);
    });
    signal.addEventListener('abort', leave, { once: true });
  }

  ownedBy(jobUid: string): Stored<EnginePod>[] {
    return this.#podsOf(this.#owned.get(jobUid));
  }

  /** Those that the Job may select: only a selector of its maker's own can mean pods that do not name the Job. */
  uncontrolledFor({ metadata: { namespace = '', name }, spec }: Stored<BatchJob>): Stored<EnginePod>[] {
    return this.#podsOf(this.#loose.get(spec.manualSelector === true ? namespace : keyOf({ namespace, name })));
  }

  isTaken(namespace: string | undefined, name: string): boolean {
    return this.#informer.get(keyOf({ namespace, name })) !== undefined;
  }

  #podsOf(keys: ReadonlySet<string> | undefined): Stored<EnginePod>[] {
    return [...(keys ?? [])].map((key) => this.#informer.get(key)).filter((pod) => pod !== undefined);
  }

  #add(key: string, pod: Stored<EnginePod>): void {
    for (const [map, value] of this.#placesOf(pod)) {
      const keys = map.get(value);
      if (keys === undefined) map.set(value, new Set([key]));
      else keys.add(key);
    }
  }

  #remove(key: string, pod: Stored<EnginePod>): void {
    for (const [map, value] of this.#placesOf(pod)) {
      const keys = map.get(value);
      if (keys?.delete(key) && keys.size === 0) map.delete(value);
    }
  }

  #placesOf(pod: Stored<EnginePod>): [Map<string, Set<string>>, value: string][] {
    const job = jobReference(pod);
    if (job !== undefined) return [[this.#owned, job.uid]];
    if (controllerOf(pod) !== undefined) return [];
    const { namespace = '', labels } = pod.metadata;
    const name = labels?.[NAME_LABEL];
    const named = name === undefined ? [] : [keyOf({ namespace, name })];
    return [namespace, ...named].map((value) => [this.#loose, value]);
  }
}

/** The key of the Job that a pod names as its controller. */
export function jobKeyOf(pod: Stored<EnginePod>): string | undefined {
  const reference = jobReference(pod);
  return reference && keyOf({ namespace: pod.metadata.namespace, name: reference.name });
}
