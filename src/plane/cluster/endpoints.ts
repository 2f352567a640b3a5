/**
 * Where our services are, for the API server: an EndpointSlice for each living process, and Endpoints for API servers that
 * look there (before 1.33). Kept by the one that leads; a process that leaves removes its own first.
 */
import { isIPv6 } from 'node:net';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { LEASES } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { SERVICE_PORT_NAME } from '#operator/objects/cluster.ts';
import { Census, type Member } from '#plane/cluster/members.ts';

const LOOK_MS = 2000;
const MANAGED_BY = { 'endpointslice.kubernetes.io/managed-by': 'selfsame-controllers' };
/** Else the cluster would make slices of its own from the Endpoints. */
const NO_MIRROR = { 'endpointslice.kubernetes.io/skip-mirror': 'true' };
const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';

interface EndpointSlice extends KubeObject {
  addressType: 'IPv4' | 'IPv6';
  endpoints: { addresses: string[]; conditions?: { ready?: boolean } }[];
  ports: { name: string; port: number; protocol: string }[];
}
interface Endpoints extends KubeObject {
  subsets?: { addresses: { ip: string }[]; ports: { name: string; port: number; protocol: string }[] }[];
}

const SLICES: ResourceType<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
};
const ENDPOINTS: ResourceType<Endpoints> = {
  group: '',
  version: 'v1',
  kind: 'Endpoints',
  plural: 'endpoints',
  namespaced: true,
};

const sliceName = (service: string, id: string) => ({ namespace: SYSTEM_NAMESPACE, name: `${service}-${id}` });

export interface EndpointsOptions {
  readonly client: Client;
  readonly services: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** Keeps them until the signal aborts; what is there stays then. */
export async function keepEndpoints(options: EndpointsOptions, { signal }: { signal: AbortSignal }): Promise<void> {
  const { clock, log } = options;
  const census = new Census(clock);
  while (!signal.aborted) {
    try {
      await writeEndpoints(options, census, signal);
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, 'Cannot say where our services are; trying again');
    }
    await delay(clock, LOOK_MS, { signal });
  }
}

async function writeEndpoints(
  { client, services }: EndpointsOptions,
  census: Census,
  signal: AbortSignal,
): Promise<void> {
  const { alive, dead } = await census.take(client);
  const labelSelector = Object.entries(MANAGED_BY).map(([key, value]) => `${key}=${value}`);
  const { items } = await client.list(SLICES, {
    namespace: SYSTEM_NAMESPACE,
    labelSelector: labelSelector.join(),
    signal,
  });
  const wanted = services.flatMap((service) => alive.map((member) => sliceOf(service, member)));
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  const present = new Set(items.map(({ metadata }) => metadata.name));
  for (const { metadata } of items) {
    const { namespace, name, uid } = metadata;
    if (!names.has(name)) await gone(client.delete(SLICES, { namespace, name }, { uid, signal }));
  }
  for (const slice of wanted) {
    if (!present.has(slice.metadata.name ?? '')) await client.create(SLICES, slice, { signal });
  }
  for (const service of services) await writeOld(client, service, alive, signal);
  for (const name of dead) await gone(client.delete(LEASES, { namespace: SYSTEM_NAMESPACE, name }, { signal }));
}

/** Takes a process out that is about to leave; its Lease is gone already. */
export async function removeEndpoints({ client, services, clock }: EndpointsOptions, id: string): Promise<void> {
  const { alive } = await new Census(clock).take(client);
  for (const service of services) {
    await gone(client.delete(SLICES, sliceName(service, id)));
    await writeOld(client, service, alive, new AbortController().signal);
  }
}

function sliceOf(service: string, { id, address, port }: Member): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...sliceName(service, id), labels: { ...MANAGED_BY, [SERVICE_NAME_LABEL]: service } },
    addressType: isIPv6(address) ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: SERVICE_PORT_NAME, port, protocol: 'TCP' }],
  };
}

async function writeOld(client: Client, service: string, alive: readonly Member[], signal: AbortSignal): Promise<void> {
  const name = { namespace: SYSTEM_NAMESPACE, name: service };
  const subsets = alive.map(({ address, port }) => ({
    addresses: [{ ip: address }],
    ports: [{ name: SERVICE_PORT_NAME, port, protocol: 'TCP' }],
  }));
  try {
    const present = await client.get(ENDPOINTS, name, { signal });
    if (!deepEqual(present.subsets ?? [], subsets)) await client.update(ENDPOINTS, { ...present, subsets }, { signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    const object = { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...name, labels: NO_MIRROR }, subsets };
    // An API server that has no such kind does not look there.
    await gone(client.create(ENDPOINTS, object, { signal }));
  }
}

async function gone(done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}
