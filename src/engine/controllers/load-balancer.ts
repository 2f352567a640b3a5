/**
 * Gives Services of type LoadBalancer the addresses of the nodes, if the administrator has enabled it. A port of an
 * address belongs to one Service: the oldest that asks for it; others stay pending, as without a load balancer.
 */
import { ENGINE_SERVICES } from '#engine/controllers/endpoint-slice/kinds.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_NODES, type EngineNode } from '#engine/controllers/kinds.ts';
import type { Service } from '#engine/registry/kinds/core/service-schema.ts';
import { objectKey } from '#client/object-key.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

interface LoadBalancerWorld {
  readonly service: Stored<Service>;
  /** All Services of type LoadBalancer, this one included. */
  readonly balanced: readonly Stored<Service>[];
  readonly nodes: readonly Stored<EngineNode>[];
}

const MAX_ADDRESSES = 16;

function decideLoadBalancer({ service, balanced, nodes }: LoadBalancerWorld): Plan {
  const present = service.status?.loadBalancer?.ingress ?? [];
  if (!isBalanced(service)) {
    // Another implementation may have written the status of a Service with a class.
    if (service.spec.type === 'LoadBalancer' || present.length === 0 || isDeleting(service)) return EMPTY_PLAN;
    return { changes: [], status: { ...service.status, loadBalancer: {} } };
  }
  const older = balanced.filter((other) => isBalanced(other) && ageOf(other) < ageOf(service));
  const isFree = older.every((other) => !sharesPort(other, service));
  const ingress = isFree ? nodeAddresses(nodes).map((ip) => ({ ip, ipMode: 'VIP' })) : [];
  return { changes: [], status: { ...service.status, loadBalancer: ingress.length === 0 ? {} : { ingress } } };
}

function isBalanced(service: Stored<Service>): boolean {
  const { type, loadBalancerClass } = service.spec;
  return type === 'LoadBalancer' && !loadBalancerClass && !isDeleting(service);
}

const ageOf = (service: Stored<Service>) => `${service.metadata.creationTimestamp ?? ''} ${objectKey(service)}`;

function sharesPort(a: Service, b: Service): boolean {
  const keysOf = ({ spec }: Service) => (spec.ports ?? []).map(({ port, protocol = 'TCP' }) => `${protocol} ${port}`);
  const taken = new Set(keysOf(a));
  return keysOf(b).some((key) => taken.has(key));
}

/** Returns the distinct addresses of the nodes; several agents of one machine have the same. */
function nodeAddresses(nodes: readonly Stored<EngineNode>[]): string[] {
  const addresses = nodes.flatMap(({ status }) =>
    (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
  );
  return [...new Set(addresses)].sort().slice(0, MAX_ADDRESSES);
}

export const loadBalancerController: EngineController = {
  account: 'service-controller',
  start(parts) {
    const services = parts.informer(ENGINE_SERVICES);
    const nodes = parts.informer(ENGINE_NODES);
    const balanced = () => services.list().filter(({ spec }) => spec.type === 'LoadBalancer');
    const controller = defineController<LoadBalancerWorld>({
      name: 'load-balancer',
      type: ENGINE_SERVICES,
      sources: [
        source(services, (service) => [
          objectKey(service),
          ...(service.spec.type === 'LoadBalancer' ? balanced().map(objectKey) : []),
        ]),
        source(nodes, () => balanced().map(objectKey), { part: ({ status }) => status?.addresses }),
      ],
      observe(key) {
        const service = services.get(key);
        return service && { service, balanced: balanced(), nodes: nodes.list() };
      },
      decide: decideLoadBalancer,
      subject: ({ service }) => service,
    });
    return startController(controller, { ...parts, events: noEvents });
  },
};
