/** Every namespace has a service account `default`, as long as it lives; one that was deleted comes back. */
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { NAMESPACES, type Namespace } from '#engine/controllers/kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export const SERVICE_ACCOUNTS: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

const DEFAULT = 'default';

export interface ServiceAccountWorld {
  readonly namespace: Stored<Namespace>;
  readonly account: Stored | undefined;
}

/** Pure. */
export function decideServiceAccount({ namespace, account }: ServiceAccountWorld): Plan {
  if (account !== undefined || isEnding(namespace)) return NOTHING;
  const metadata = { name: DEFAULT, namespace: namespace.metadata.name };
  const object: KubeObject = { apiVersion: 'v1', kind: 'ServiceAccount', metadata };
  const why = 'every namespace has a default service account';
  return { changes: [{ do: 'create', type: SERVICE_ACCOUNTS, object, why }] };
}

/** Nothing can be made in it any more. */
export function isEnding({ metadata, status }: Namespace): boolean {
  return metadata.deletionTimestamp !== undefined || status?.phase === 'Terminating';
}

export const serviceAccountController: EngineController = {
  account: 'service-account-controller',
  start(parts) {
    const namespaces = parts.informer(NAMESPACES);
    const accounts = parts.informer(SERVICE_ACCOUNTS);
    const definition = defineController<ServiceAccountWorld>({
      name: 'service-account-controller',
      type: NAMESPACES,
      sources: [source(namespaces), source(accounts, namespaceOf(DEFAULT))],
      observe(key) {
        const namespace = namespaces.get(key);
        return namespace && { namespace, account: accounts.get(`${key}/${DEFAULT}`) };
      },
      decide: decideServiceAccount,
      // It goes without saying: a namespace has no Events about it.
      subject: () => undefined,
    });
    return startController(definition, parts);
  },
};

/** The keys of objects of one name: the namespaces that they are in. */
export function namespaceOf(name: string): (object: Stored) => string[] {
  return ({ metadata }) => (metadata.name === name && metadata.namespace ? [metadata.namespace] : []);
}
