/** Creates the service account `default` in every namespace, and creates it again if it was deleted. */
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_NAMESPACES, type Namespace } from '#engine/controllers/kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';
import { SERVICE_ACCOUNTS } from '#kube/cluster-kinds.ts';

const DEFAULT = 'default';

interface ServiceAccountWorld {
  readonly namespace: Stored<Namespace>;
  readonly account: Stored | undefined;
}

/** Decides the next step for the default account of one namespace. Pure. */
export function decideServiceAccount({ namespace, account }: ServiceAccountWorld): Plan {
  if (account !== undefined || isNamespaceTerminating(namespace)) return EMPTY_PLAN;
  const metadata = { name: DEFAULT, namespace: namespace.metadata.name };
  const object: KubeObject = { apiVersion: 'v1', kind: 'ServiceAccount', metadata };
  const why = 'every namespace has a default service account';
  return { changes: [{ do: 'create', type: SERVICE_ACCOUNTS, object, why }] };
}

/** Reports whether objects can no longer be created in a namespace. */
export function isNamespaceTerminating({ metadata, status }: Namespace): boolean {
  return metadata.deletionTimestamp !== undefined || status?.phase === 'Terminating';
}

export const serviceAccountController: EngineController = {
  account: 'service-account-controller',
  start(parts) {
    const namespaces = parts.informer(ENGINE_NAMESPACES);
    const accounts = parts.informer(SERVICE_ACCOUNTS);
    const definition = defineController<ServiceAccountWorld>({
      name: 'service-account-controller',
      type: ENGINE_NAMESPACES,
      sources: [source(namespaces), source(accounts, toNamespaceKey(DEFAULT))],
      observe(key) {
        const namespace = namespaces.get(key);
        return namespace && { namespace, account: accounts.get(`${key}/${DEFAULT}`) };
      },
      decide: decideServiceAccount,
      // Creating the default account is routine and needs no Event.
      subject: () => undefined,
    });
    return startController(definition, parts);
  },
};

/** Returns a key function for sources: it maps objects with this name to their namespace, and other objects to nothing. */
export function toNamespaceKey(name: string): (object: Stored) => string[] {
  return ({ metadata }) => (metadata.name === name && metadata.namespace ? [metadata.namespace] : []);
}
