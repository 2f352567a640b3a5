/**
 * Publishes the CA certificate of the API server in every namespace, as ConfigMap `kube-root-ca.crt`. Pods verify the
 * server with it. Changes by other clients are reverted.
 */
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_NAMESPACES, type Namespace } from '#engine/controllers/kinds.ts';
import { isNamespaceTerminating, toNamespaceKey } from '#engine/controllers/service-accounts/service-account.ts';
import { CONFIG_MAPS, type ConfigMap } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

const NAME = 'kube-root-ca.crt';
const KEY = 'ca.crt';
const DESCRIPTION_KEY = 'kubernetes.io/description';
const DESCRIPTION =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

interface RootCaWorld {
  readonly namespace: Stored<Namespace>;
  readonly configMap: Stored<ConfigMap> | undefined;
  readonly caPem: string;
}

/** Decides the next step for the ConfigMap of one namespace. Pure. */
export function decideRootCa({ namespace, configMap, caPem }: RootCaWorld): Plan {
  if (isNamespaceTerminating(namespace)) return EMPTY_PLAN;
  const wanted = { [KEY]: caPem };
  const annotations = { [DESCRIPTION_KEY]: DESCRIPTION };
  const name = { name: NAME, namespace: namespace.metadata.name };
  if (configMap === undefined) {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...name, annotations }, data: wanted };
    const why = 'every namespace contains the CA certificate of the API server';
    return { changes: [{ do: 'create', type: CONFIG_MAPS, object, why }] };
  }
  const { metadata, data = {} } = configMap;
  if (metadata.deletionTimestamp !== undefined) return EMPTY_PLAN;
  if (deepEqual(data, wanted) && metadata.annotations?.[DESCRIPTION_KEY]) return EMPTY_PLAN;
  // Other keys are removed.
  const removed = Object.fromEntries(Object.keys(data).map((key) => [key, null]));
  const body = { metadata: { annotations }, data: { ...removed, ...wanted } };
  const why = 'the ConfigMap does not contain the current CA certificate';
  return {
    changes: [{ do: 'patch', type: CONFIG_MAPS, name, uid: metadata.uid, patch: { type: 'merge', body }, why }],
  };
}

/** `caPem` is the CA certificate that signed the serving certificate. */
export function rootCaPublisher({ caPem }: { readonly caPem: string }): EngineController {
  return {
    account: 'root-ca-cert-publisher',
    start(parts) {
      const namespaces = parts.informer(ENGINE_NAMESPACES);
      const configMaps = parts.informer(CONFIG_MAPS);
      const definition = defineController<RootCaWorld>({
        name: 'root-ca-cert-publisher',
        type: ENGINE_NAMESPACES,
        sources: [source(namespaces), source(configMaps, toNamespaceKey(NAME))],
        observe(key) {
          const namespace = namespaces.get(key);
          return namespace && { namespace, configMap: configMaps.get(`${key}/${NAME}`), caPem };
        },
        decide: decideRootCa,
        subject: () => undefined,
      });
      return startController(definition, parts);
    },
  };
}
