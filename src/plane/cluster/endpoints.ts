/**
 * Where our services are, for the API server: an EndpointSlice for each living process, and Endpoints for API servers that
 * look there (before 1.33). Every process keeps all of them, whoever leads: the one that is gone may be the one that led. A
 * process that leaves removes its own first.
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
import { Census, leaseName, type Member } from '#plane/cluster/members.ts';
import { isRefused } from '#plane/cluster/probe.ts';

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
  /** Of this process. */
  readonly id: string;
  readonly services: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** Keeps them until the signal aborts; what is there stays then. `whenTold` is called each time that all of them stand. */
export async function keepEndpoints(
  options: EndpointsOptions,
  { signal, whenTold }: { readonly signal: AbortSignal; whenTold(): void },
): Promise<void> {
  const { clock, log } = options;
  const census = new Census(clock);
  while (!signal.aborted) {
    try {
      await writeEndpoints(options, census, signal);
      whenTold();
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, 'Cannot say where our services are; trying again');
    }
    await delay(clock, LOOK_MS, { signal });
  }
}

/** One look. */
export async function writeEndpoints(
  { client, id, services, clock }: EndpointsOptions,
  census: Census,
  signal: AbortSignal,
): Promise<void> {
  const { alive: known, dead } = await census.take(client);
  const refused = await Promise.all(known.map(async (one) => one.id !== id && (await isRefused(one, { clock }))));
  const alive = known.filter((_, index) => refused[index] !== true);
  dead.push(...known.filter((_, index) => refused[index] === true).map((one) => leaseName(one.id).name));
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
    if (!names.has(name)) await unlessDone(client.delete(SLICES, { namespace, name }, { uid, signal }));
  }
  for (const slice of wanted) {
    if (!present.has(slice.metadata.name ?? '')) await unlessDone(client.create(SLICES, slice, { signal }));
  }
  for (const service of services) await writeOld(client, service, alive, signal);
  for (const name of dead) await unlessDone(client.delete(LEASES, { namespace: SYSTEM_NAMESPACE, name }, { signal }));
}

/** Takes a process out that is about to leave; its Lease is gone already. */
export async function removeEndpoints({ client, id, services, clock }: EndpointsOptions): Promise<void> {
  const { alive } = await new Census(clock).take(client);
  for (const service of services) {
    await unlessDone(client.delete(SLICES, sliceName(service, id)));
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
    if (deepEqual(present.subsets ?? [], subsets)) return;
    await unlessDone(client.update(ENDPOINTS, { ...present, subsets }, { signal }));
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    const object = { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...name, labels: NO_MIRROR }, subsets };
    // An API server that has no such kind does not look there.
    await unlessDone(client.create(ENDPOINTS, object, { signal }));
  }
}

/** Another process may be quicker, and does the same; what is left to do is seen at the next look. */
async function unlessDone(done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!['NotFound', 'AlreadyExists', 'Conflict'].some((reason) => isApiError(error, reason))) throw error;
  }
}
