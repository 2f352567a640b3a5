/**
 * Maintains the Node and its Lease. The Lease is renewed every few seconds. The Node is written when it differs from the
 * desired state, also after it was marked as lost, and periodically for its heartbeat.
 */
import { getIfExists } from '#client/get-if-exists.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { isApiError } from '#kube/api-error.ts';
import { LEASES, NODES, type Lease, type Node } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { microTimestamp, type Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import {
  annotationChanges,
  labelChanges,
  nodeAnnotations,
  nodeLabels,
  buildNodeStatus,
  withoutHeartbeat,
  type NodeDescription,
} from '#node/registration/node-object.ts';
import { WorkQueue } from '#runtime/work-queue.ts';

interface RegistrationParts {
  readonly client: Client;
  /** Informer of this Node only. */
  readonly nodes: Informer<Node>;
  readonly description: NodeDescription;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface Registration {
  /** Resolves when the Node is complete, including the address of this agent, or when the registration is stopped. */
  readonly registered: Promise<void>;
  idle(): Promise<void>;
  stop(): Promise<void>;
}

const LEASE_NAMESPACE = 'kube-node-lease';
const LEASE_SECONDS = 40;
const RENEW_MS = 10_000;
const HEARTBEAT_MS = 300_000;
/** Short, because the node counts as lost if its Lease is not renewed in time. */
const BACKOFF = { firstMs: 200, maxMs: 7000 };

/** Starts the registration. Call it when the informer has synced. */
export function register(parts: RegistrationParts): Registration {
  const { nodes, description, clock, log, signal } = parts;
  const lease = new NodeLease(parts);
  const registered = Promise.withResolvers<void>();
  const work = {
    node: async () => {
      await updateNode(parts);
      registered.resolve();
      return { afterMs: HEARTBEAT_MS };
    },
    lease: async () => {
      await lease.renew();
      return { afterMs: RENEW_MS };
    },
  };
  const queue = new WorkQueue({
    clock,
    concurrency: 2,
    backoff: BACKOFF,
    work: (key) => (key === 'lease' ? work.lease() : work.node()),
    onError: (key, error, { delayMs }) => {
      if (!signal.aborted)
        log.warn({ err: error, delayMs }, `Cannot write the ${key} of this node; it will be tried again`);
    },
  });
  const unsubscribe = nodes.onChange((key) => {
    if (key === description.name) queue.add('node');
  });
  queue.add('node');
  queue.add('lease');
  return {
    registered: registered.promise,
    idle: () => queue.idle(),
    async stop() {
      unsubscribe();
      registered.resolve();
      await queue.shutdown();
    },
  };
}

/** Writes only what differs from the desired Node. */
async function updateNode({ client, nodes, description, clock, signal }: RegistrationParts): Promise<void> {
  const { name } = description;
  const node = nodes.get(name) ?? (await getOrCreate(client, description, signal));
  const labels = labelChanges(node.metadata.labels ?? {}, nodeLabels(description));
  const annotations = annotationChanges(node.metadata.annotations ?? {}, nodeAnnotations(description));
  if (labels !== undefined || annotations !== undefined) {
    const body = { metadata: { labels, annotations } };
    await client.patch(NODES, { name }, { type: 'merge', body }, { signal });
  }
  const old = node.status ?? {};
  const next = buildNodeStatus(old, description, clock.now());
  const isUnchanged = deepEqual(withoutHeartbeat(old), withoutHeartbeat(next));
  if (isUnchanged && heartbeatAgeMs(node, clock.now()) < HEARTBEAT_MS) return;
  // Addresses are merged by type, so an obsolete one would stay without `replace`.
  const status = { ...next, addresses: [{ $patch: 'replace' }, ...(next.addresses ?? [])] };
  await client.patch(NODES, { name }, { type: 'strategic', body: { status } }, { subresource: 'status', signal });
}

function heartbeatAgeMs({ status }: Node, nowMs: number): number {
  const heartbeat = status?.conditions?.find(({ type }) => type === 'Ready')?.lastHeartbeatTime;
  return heartbeat === undefined ? Infinity : nowMs - Date.parse(heartbeat);
}

async function getOrCreate(client: Client, description: NodeDescription, signal: AbortSignal): Promise<Stored<Node>> {
  const { name, taints = [] } = description;
  const metadata = { name, labels: nodeLabels(description), annotations: nodeAnnotations(description) };
  try {
    const spec = taints.length === 0 ? {} : { spec: { taints: taints.map((taint) => ({ ...taint })) } };
    return await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata, ...spec }, { signal });
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
    return client.get(NODES, { name }, { signal });
  }
}

class NodeLease {
  readonly #parts: RegistrationParts;
  #known: Stored<Lease> | undefined;

  constructor(parts: RegistrationParts) {
    this.#parts = parts;
  }

  async renew(): Promise<void> {
    const { client, description, clock, signal } = this.#parts;
    const { name } = description;
    const known = this.#known;
    // After a failure the next try reads the Lease again.
    this.#known = undefined;
    const lease = known ?? (await getIfExists(client, LEASES, { namespace: LEASE_NAMESPACE, name }, { signal }));
    const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime: microTimestamp(clock.now()) };
    if (lease === undefined) {
      const metadata = { name, namespace: LEASE_NAMESPACE };
      const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
      this.#known = await client.create(LEASES, object, { signal });
    } else {
      this.#known = await client.update(LEASES, { ...lease, spec: { ...lease.spec, ...spec } }, { signal });
    }
  }
}
