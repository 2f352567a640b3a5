/** Registration of the aggregated API that subresources/ serves: start, stop, console ... Old virtctls use v1alpha3. */
import { SUBRESOURCES_GROUP, SYSTEM_NAMESPACE } from '#api/names.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { API_SERVICES } from '#kube/cluster-kinds.ts';

export const SUBRESOURCES_SERVICE = 'selfsame-subresources';

const VERSIONS = { v1: 20, v1alpha3: 15 };

export const apiServiceObjects: readonly DesiredObject[] = Object.entries(VERSIONS).map(([version, versionPriority]) =>
  desiredObject(
    API_SERVICES,
    { name: `${version}.${SUBRESOURCES_GROUP}` },
    {
      spec: {
        group: SUBRESOURCES_GROUP,
        version,
        groupPriorityMinimum: 1000,
        versionPriority,
        service: { namespace: SYSTEM_NAMESPACE, name: SUBRESOURCES_SERVICE, port: 443 },
      },
    },
  ),
);
