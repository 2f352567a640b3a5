/** Sources of what the operator keeps: looked at when it starts, and whenever one of the objects changes. */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { groupResource, type KubeObject } from '#kube/meta.ts';
import type { Desired } from '#operator/desired.ts';
import type { Source } from '#runtime/controller.ts';

/** `nameOf` says which name is looked at for the object of that key. Objects of others do not count. */
export function watched<T extends KubeObject>(
  informer: Informer<T>,
  wanted: readonly Desired[],
  nameOf: (key: string) => string,
): Source {
  const kind = groupResource(informer.type);
  const keys = new Set(
    wanted.filter(({ type }) => groupResource(type) === kind).map(({ object }) => objectKey(object)),
  );
  return {
    cache: informer,
    subscribe(add) {
      // What is missing makes no news.
      for (const key of keys) add(nameOf(key));
      return informer.onChange((key) => {
        if (keys.has(key)) add(nameOf(key));
      });
    },
  };
}
