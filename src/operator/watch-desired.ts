/** Sources of the operator's controllers: reconciles at the start, and whenever a desired object changes. */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { groupResource, type KubeObject } from '#kube/meta.ts';
import type { DesiredObject } from '#operator/desired.ts';
import type { Source } from '#runtime/controller.ts';

/** `nameOf` returns the key to reconcile for an object. Objects that are not desired are ignored. */
export function watchDesired<T extends KubeObject>(
  informer: Informer<T>,
  wanted: readonly DesiredObject[],
  nameOf: (key: string) => string,
): Source {
  const kind = groupResource(informer.type);
  const keys = new Set(
    wanted.filter(({ type }) => groupResource(type) === kind).map(({ object }) => objectKey(object)),
  );
  return {
    cache: informer,
    subscribe(add) {
      // Missing objects cause no events.
      for (const key of keys) add(nameOf(key));
      return informer.onChange((key) => {
        if (keys.has(key)) add(nameOf(key));
      });
    },
  };
}
