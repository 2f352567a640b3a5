/** The kinds that the collector watches, and the lookup of kinds by reference. Follows changes of the registry. */
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource, ApiVerb } from '#engine/registry/resource.ts';
import { apiVersionOf, type OwnerReference } from '#kube/meta.ts';

const REQUIRED_VERBS: readonly ApiVerb[] = ['delete', 'get', 'list', 'patch', 'watch'];

export class ServedKinds {
  readonly #registry: Pick<Registry, 'generation' | 'resources' | 'collections'>;
  #generation = -1;
  #byReference = new Map<string, Resource>();

  constructor(registry: Pick<Registry, 'generation' | 'resources' | 'collections'>) {
    this.#registry = registry;
  }

  get generation(): number {
    return this.#registry.generation;
  }

  /** Returns one version of each kind that can be collected. Events are excluded: they own nothing and there are many. */
  collectable(): readonly Resource[] {
    return this.#registry
      .collections()
      .filter(({ plural, verbs }) => plural !== 'events' && REQUIRED_VERBS.every((verb) => verbs.includes(verb)));
  }

  /** Returns undefined if the kind is not served in this version. */
  find({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): Resource | undefined {
    if (this.#generation !== this.#registry.generation) this.#index();
    return this.#byReference.get(`${apiVersion} ${kind}`);
  }

  #index(): void {
    this.#generation = this.#registry.generation;
    this.#byReference = new Map();
    for (const resource of this.#registry.resources) {
      if (resource.verbs.includes('get')) {
        this.#byReference.set(`${apiVersionOf(resource)} ${resource.kind}`, resource);
      }
    }
  }
}
