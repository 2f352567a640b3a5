/** The compiled selectors of all objects of a kind, by namespace. They are evaluated for every change of a pod. */
import type { Informer } from '#client/informer.ts';
import { objectKey, parseKey } from '#client/object-key.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { LabelledPods } from '#engine/controllers/labelled-pods.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { type LabelRequirement, matchesLabels } from '#kube/selectors/label-selector.ts';
import type { Source } from '#runtime/controller.ts';

export class PodSelectors<T extends KubeObject> {
  readonly #byNamespace = new Map<string, Map<string, readonly LabelRequirement[]>>();
  readonly #selectorOf: (object: T) => readonly LabelRequirement[] | undefined;

  /** `selectorOf` returns undefined for an object that selects nothing. */
  constructor(selectorOf: (object: T) => readonly LabelRequirement[] | undefined) {
    this.#selectorOf = selectorOf;
  }

  #update(key: string, object: Stored<T>, isPresent: boolean): void {
    const { namespace = '' } = object.metadata;
    const selectors = this.#byNamespace.get(namespace) ?? new Map<string, readonly LabelRequirement[]>();
    const selector = isPresent ? this.#selectorOf(object) : undefined;
    if (selector === undefined) selectors.delete(key);
    else selectors.set(key, selector);
    if (selectors.size === 0) this.#byNamespace.delete(namespace);
    else this.#byNamespace.set(namespace, selectors);
  }

  /** Returns the selector of an object; undefined if it selects nothing or does not exist. */
  get(key: string): readonly LabelRequirement[] | undefined {
    return this.#byNamespace.get(parseKey(key).namespace ?? '')?.get(key);
  }

  /** Returns the keys of the objects that select the pod. */
  #keysFor({ metadata }: EnginePod): string[] {
    const keys: string[] = [];
    for (const [key, selector] of this.#byNamespace.get(metadata.namespace ?? '') ?? []) {
      if (matchesLabels(selector, metadata.labels)) keys.push(key);
    }
    return keys;
  }

  /** Returns a source that wakes the controller for each changed object. */
  objectSource(objects: Informer<T>): Source {
    return {
      cache: objects,
      subscribe: (add) =>
        objects.onChange((key, { old, new: next }) => {
          this.#update(key, (next ?? old)!, next !== undefined);
          add(key);
        }),
    };
  }

  /** Returns a source that wakes the controller for the objects that select a changed pod, before or after the change. */
  podSource(pods: Informer<EnginePod>, labelled: LabelledPods): Source {
    return {
      cache: pods,
      subscribe: (add) =>
        pods.onChange((_, change) => {
          const { old, new: next } = change;
          labelled.update(objectKey((next ?? old)!), change);
          if (old !== undefined) for (const key of this.#keysFor(old)) add(key);
          if (next !== undefined) for (const key of this.#keysFor(next)) add(key);
        }),
    };
  }
}
