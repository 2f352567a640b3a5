/** Reads the scale of the controllers of pods through the API. */
import type { Reader } from '#client/client.ts';
import { type OwnerScale, type Scales } from '#engine/controllers/disruption/expected-pods.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { isApiError } from '#kube/api-error.ts';
import {
  controllerOf,
  groupResource,
  type KubeObject,
  type OwnerReference,
  parseApiVersion,
  type Stored,
} from '#kube/meta.ts';

interface ScaleReader {
  readonly reader: Pick<Reader, 'get'>;
  readonly registry: Pick<Registry, 'resources'>;
}

export async function readOwnerScales(
  pods: readonly Stored<EnginePod>[],
  parts: ScaleReader,
  { signal }: { signal: AbortSignal },
): Promise<Scales> {
  const scales = new Map<string, OwnerScale>();
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (owner === undefined || scales.has(owner.uid)) continue;
    scales.set(owner.uid, await readOwnerScale(owner, pod.metadata.namespace ?? '', parts, signal));
  }
  return scales;
}

async function readOwnerScale(
  owner: OwnerReference,
  namespace: string,
  { reader, registry }: ScaleReader,
  signal: AbortSignal,
): Promise<OwnerScale> {
  const { group, version } = parseApiVersion(owner.apiVersion);
  const resource = registry.resources.find(
    (one) => one.group === group && one.version === version && one.kind === owner.kind,
  );
  if (resource === undefined) return { is: 'none', resource: `${owner.kind}.${owner.apiVersion}` };
  if (resource.scale === undefined) return { is: 'none', resource: groupResource(resource) };
  return readScale(owner, namespace, resource, reader, signal);
}

/** Reads the scale subresource, because the controller's account may not read objects of custom kinds. */
async function readScale(
  { name, uid }: OwnerReference,
  namespace: string,
  resource: Resource,
  reader: ScaleReader['reader'],
  signal: AbortSignal,
): Promise<OwnerScale> {
  const path = { name, namespace, subresource: 'scale' };
  try {
    const scale: Stored<Scale> = await reader.get<Scale>(resource, path, { signal });
    if (scale.metadata.uid !== uid) return { is: 'missing' };
    return { replicas: scale.spec?.replicas ?? 0 };
  } catch (error) {
    if (isApiError(error, 'NotFound')) return { is: 'missing' };
    throw error;
  }
}

interface Scale extends KubeObject {
  spec?: { replicas?: number };
}
