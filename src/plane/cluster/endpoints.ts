/**
 * Publishes the addresses of our services for the API server: an EndpointSlice for each live process, and Endpoints for
 * API servers before 1.33. Every process writes those of all processes, because the lost one may be the leader. A
 * process that leaves removes its own first.
 */
import { isIPv6, connect } from 'node:net';
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
import { MemberTracker, leaseName, type Member } from '#plane/cluster/members.ts';

const INTERVAL_MS = 2000;
const MANAGED_BY = { 'endpointslice.kubernetes.io/managed-by': 'selfsame-controllers' };
/** Prevents the cluster from creating slices from the Endpoints. */
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

interface EndpointsOptions {
  readonly client: Client;
  /** Id of this process. */
  readonly id: string;
  readonly services: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** Writes the endpoints until the signal aborts, and leaves them then. Calls `onWritten` after each complete write. */
export async function keepEndpoints(
  options: EndpointsOptions,
  { signal, onWritten }: { readonly signal: AbortSignal; onWritten(): void },
): Promise<void> {
  const { clock, log } = options;
  const members = new MemberTracker(clock);
  while (!signal.aborted) {
    try {
      await writeEndpoints(options, members, signal);
      onWritten();
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, 'Cannot write the endpoints of our services; retrying');
    }
    await delay(clock, INTERVAL_MS, { signal });
  }
}

/** Writes the endpoints once. */
export async function writeEndpoints(
  { client, id, services, clock }: EndpointsOptions,
  members: MemberTracker,
  signal: AbortSignal,
): Promise<void> {
  const { alive: known, dead } = await members.list(client);
  const refused = await Promise.all(
    known.map(async (one) => one.id !== id && (await isConnectionRefused(one, { clock }))),
  );
  const alive = known.filter((_, index) => refused[index] !== true);
  dead.push(...known.filter((_, index) => refused[index] === true).map((one) => leaseName(one.id).name));
  const labelSelector = Object.entries(MANAGED_BY).map(([key, value]) => `${key}=${value}`);
  const { items } = await client.list(SLICES, {
    namespace: SYSTEM_NAMESPACE,
    labelSelector: labelSelector.join(),
    signal,
  });
  const wanted = services.flatMap((service) => alive.map((member) => buildSlice(service, member)));
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  const present = new Set(items.map(({ metadata }) => metadata.name));
  for (const { metadata } of items) {
    const { namespace, name, uid } = metadata;
    if (!names.has(name)) await ignoreRace(client.delete(SLICES, { namespace, name }, { uid, signal }));
  }
  for (const slice of wanted) {
    if (!present.has(slice.metadata.name ?? '')) await ignoreRace(client.create(SLICES, slice, { signal }));
  }
  for (const service of services) await writeLegacyEndpoints(client, service, alive, signal);
  for (const name of dead) await ignoreRace(client.delete(LEASES, { namespace: SYSTEM_NAMESPACE, name }, { signal }));
}

/** Removes the endpoints of this process before it leaves. Its Lease is already deleted. */
export async function removeEndpoints({ client, id, services, clock }: EndpointsOptions): Promise<void> {
  const { alive } = await new MemberTracker(clock).list(client);
  for (const service of services) {
    await ignoreRace(client.delete(SLICES, sliceName(service, id)));
    await writeLegacyEndpoints(client, service, alive, new AbortController().signal);
  }
}

function buildSlice(service: string, { id, address, port }: Member): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...sliceName(service, id), labels: { ...MANAGED_BY, [SERVICE_NAME_LABEL]: service } },
    addressType: isIPv6(address) ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: SERVICE_PORT_NAME, port, protocol: 'TCP' }],
  };
}

async function writeLegacyEndpoints(
  client: Client,
  service: string,
  alive: readonly Member[],
  signal: AbortSignal,
): Promise<void> {
  const name = { namespace: SYSTEM_NAMESPACE, name: service };
  const subsets = alive.map(({ address, port }) => ({
    addresses: [{ ip: address }],
    ports: [{ name: SERVICE_PORT_NAME, port, protocol: 'TCP' }],
  }));
  try {
    const present = await client.get(ENDPOINTS, name, { signal });
    if (deepEqual(present.subsets ?? [], subsets)) return;
    await ignoreRace(client.update(ENDPOINTS, { ...present, subsets }, { signal }));
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    const object = { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...name, labels: NO_MIRROR }, subsets };
    // An API server without this kind does not need it.
    await ignoreRace(client.create(ENDPOINTS, object, { signal }));
  }
}

/** Ignores errors if another process was faster. The next write does what is left. */
async function ignoreRace(done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!['NotFound', 'AlreadyExists', 'Conflict'].some((reason) => isApiError(error, reason))) throw error;
  }
}

const PROBE_MS = 1000;

/**
 * Reports whether the machine refuses connections to the port: then the process has ended. A timeout does not count,
 * because other machines may still reach the process.
 */
function isConnectionRefused(
  { address, port }: { readonly address: string; readonly port: number },
  { clock }: { readonly clock: Clock },
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const done = (refused: boolean) => {
      stopTimer();
      socket.destroy();
      resolve(refused);
    };
    const stopTimer = clock.after(PROBE_MS, () => done(false));
    socket.once('connect', () => done(false));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => done(code === 'ECONNREFUSED'));
  });
}
