/**
 * Routes the Services of the plane on this host, as kube-proxy does on the nodes of a cluster, and writes their names for
 * DNS. Several agents of one machine do the same work with the same result. Everything stays when the agent stops.
 */
import type { Informer } from '#client/informer.ts';
import { SERVICE_NAME_LABEL } from '#kube/cluster-kinds.ts';
import { NODES } from '#kube/core-kinds.ts';
import { type KubeObject, resourceAs } from '#kube/meta.ts';
import { ROUTED_SERVICES, ROUTED_SLICES, type RoutedService, type RoutedSlice } from '#node/services/kinds.ts';
import { writeHostsFiles } from '#node/services/hosts-directory.ts';
import type { RuleSets } from '#node/services/nft.ts';
import { planForwards } from '#node/services/service-forwards.ts';
import { buildHostsFiles } from '#node/services/service-names.ts';
import {
  buildServiceTable,
  isGuestAddress,
  removalText,
  serviceTableName,
  type ServiceNetwork,
} from '#node/services/service-table.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { type DeclaredReads, ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

/** A Node with the address that tells hosts apart. */
interface HostNode extends KubeObject {
  status?: { addresses?: readonly { readonly type: string; readonly address: string }[] };
}
export const HOST_NODES = resourceAs<HostNode>(NODES);

interface ServiceRoutingParts {
  readonly services: Informer<RoutedService>;
  readonly slices: Informer<RoutedSlice>;
  /** All nodes: those with the address of this one are on this host. */
  readonly nodes: Informer<HostNode>;
  readonly nodeName: string;
  readonly rules: RuleSets;
  /** Returns the directory of the hosts files of a network. */
  hostsDir(key: string): string;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface ServiceRouting {
  /** Sets the network whose guests are served; undefined removes the rules and names. */
  setNetwork(network: ServiceNetwork | undefined): void;
  idle(): Promise<void>;
  stop(): Promise<void>;
}

const BY_SERVICE = 'slices-of-service';
const WORK = 'services';
/** The shortest time between two changes of the rules. */
const MIN_INTERVAL_MS = 250;
/** Rules that another program has removed are restored within this time. */
const CHECK_MS = 30_000;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };
const READS: DeclaredReads = {
  name: 'service-routing',
  followed: [ROUTED_SERVICES, ROUTED_SLICES, HOST_NODES],
  rechecks: [],
};

/** Starts the loop. Call it when the informers have synced. */
export function startServiceRouting(parts: ServiceRoutingParts): ServiceRouting {
  const { services, slices, nodes, rules, clock, log, signal } = parts;
  slices.addIndex(BY_SERVICE, ({ metadata: { namespace = '', labels } }) => {
    const name = labels?.[SERVICE_NAME_LABEL];
    return name === undefined ? [] : [`${namespace}/${name}`];
  });
  let network: ServiceNetwork | undefined;
  let previous: ServiceNetwork | undefined;
  let appliedAt = Number.NEGATIVE_INFINITY;
  let applied = '';
  let checkedAt = Number.NEGATIVE_INFINITY;

  const work = async (): Promise<WorkResult> => {
    const waitMs = appliedAt + MIN_INTERVAL_MS - clock.elapsed();
    if (waitMs > 0) return { afterMs: waitMs };
    const current = network;
    if (previous !== undefined && previous.key !== current?.key) {
      await rules.apply(removalText(previous.key));
      await writeHostsFiles(parts.hostsDir(previous.key), new Map(), clock.now());
      applied = '';
    }
    previous = current;
    if (current === undefined) return {};
    const view = {
      services: services.list(),
      slicesOf: (namespace: string, name: string) => slices.byIndex(BY_SERVICE, `${namespace}/${name}`),
    };
    await writeHostsFiles(parts.hostsDir(current.key), buildHostsFiles(view), clock.now());
    const { forwards, ignored } = planForwards({
      ...view,
      isLocalNode: localNodes(nodes.list(), parts.nodeName),
      isGuest: (ip) => isGuestAddress(current, ip),
      remoteFamilies: new Set((current.hostAddresses ?? []).map(({ family }) => family)),
    });
    const table = buildServiceTable(current, forwards);
    if (clock.elapsed() - checkedAt >= CHECK_MS || applied === '') {
      checkedAt = clock.elapsed();
      const present = await rules.readChain(serviceTableName(current.key), 'prerouting');
      applied = present?.includes(`"${table.hash}"`) === true ? table.hash : 'other';
    }
    if (applied !== table.hash) {
      appliedAt = clock.elapsed();
      await rules.apply(table.text);
      applied = table.hash;
      if (ignored.length > 0) log.info({ ignored }, 'Some ports of Services are not forwarded');
    }
    return { afterMs: CHECK_MS };
  };
  const readRules = new ReadRules(READS);
  const queue = new WorkQueue({
    clock,
    backoff: BACKOFF,
    work: () => readRules.run(work),
    onError: (_, err, { delayMs }) => {
      if (!signal.aborted) log.error({ err, delayMs }, 'Cannot route Services; it will be tried again');
    },
  });
  const add = () => queue.add(WORK);
  const unsubscribes = [
    services.onChange(add),
    slices.onChange(add),
    nodes.onChange((_, { old, new: next }) => {
      if (addressOf(old) !== addressOf(next)) add();
    }),
  ];
  return {
    setNetwork(next) {
      network = next;
      add();
    },
    idle: () => queue.idle(),
    async stop() {
      for (const unsubscribe of unsubscribes) unsubscribe();
      await queue.shutdown();
    },
  };
}

function addressOf(node: HostNode | undefined): string | undefined {
  return node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
}

/** Agents of one machine have the same address; agents of other machines have others. */
function localNodes(nodes: readonly HostNode[], own: string): (name: string) => boolean {
  const address = addressOf(nodes.find(({ metadata }) => metadata.name === own));
  const local = nodes.filter((node) => addressOf(node) === address && address !== undefined);
  const names = new Set([own, ...local.map(({ metadata }) => metadata.name ?? '')]);
  return (name) => names.has(name);
}
