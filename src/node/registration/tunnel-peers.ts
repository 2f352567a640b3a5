/**
 * Follows the Nodes and tells the default network of this host which other hosts belong to it. Each node publishes the
 * address of its host in an annotation; nodes of one machine that publish none have no tunnel.
 */
import { HYPERVISOR_LABEL, TUNNEL_ADDRESS_ANNOTATION } from '#api/names.ts';
import type { Reader } from '#client/client.ts';
import { Informer } from '#client/informer.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import { formatIpAddress, networkContains, parseIpAddress, parseIpNetwork, type IpAddress } from '#lib/ip-address.ts';
import type { Log } from '#lib/log.ts';
import { type DeclaredReads, ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue } from '#runtime/work-queue.ts';

interface PeerParts {
  /** A client that may read all Nodes. */
  readonly reader: Reader;
  /** The address of this host. */
  readonly local: string;
  setPeers(local: string, peers: readonly string[]): Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface PeerSelection {
  /** The addresses of the other hosts, in a stable order. */
  readonly peers: readonly string[];
  /** Nodes whose hosts cannot be reached, each with the reason. */
  readonly ignored: readonly string[];
}

const WORK = 'peers';
const BACKOFF = { firstMs: 500, maxMs: 30_000 };
const READS: DeclaredReads = { name: 'tunnel-peers', followed: [NODES], rechecks: [] };
/** Loopback, the unspecified address and multicast: not addresses of one host for others. */
const UNUSABLE = ['127.0.0.0/8', '0.0.0.0/8', '224.0.0.0/3', '::1/128', '::/128', 'ff00::/8'].map(parseIpNetwork);

/** Returns the address if other hosts can reach this one there: it is not a loopback or wildcard address. */
export function tunnelAddressOf(address: string): string | undefined {
  const parsed = parseUsable(address);
  return parsed && formatIpAddress(parsed);
}

/** Selects the peers of the host with the address `local`. Several nodes of one host have the same address. Pure. */
export function selectPeers(nodes: readonly Node[], local: string): PeerSelection {
  const own = parseUsable(local);
  const peers = new Set<string>();
  const ignored: string[] = [];
  for (const { metadata } of nodes) {
    const text = metadata.annotations?.[TUNNEL_ADDRESS_ANNOTATION];
    if (text === undefined) continue;
    const address = parseUsable(text);
    if (address === undefined) {
      ignored.push(`${metadata.name}: ${JSON.stringify(text)} is not an address of a host`);
    } else if (address.family !== own?.family) {
      ignored.push(`${metadata.name}: ${text} is not of the same family as ${local}, the address of this host`);
    } else if (address.value !== own.value) {
      peers.add(formatIpAddress(address));
    }
  }
  return { peers: [...peers].sort(), ignored: ignored.sort() };
}

/** Starts to follow the Nodes. The peers are set for the first time when all Nodes are known, and after each change. */
export function followPeers(parts: PeerParts): { idle(): Promise<void>; stop(): Promise<void> } {
  const { reader, local, setPeers, clock, log, signal } = parts;
  // Clusters may have thousands of other nodes.
  const nodes = new Informer({ reader, type: NODES, labelSelector: HYPERVISOR_LABEL, clock, log });
  const running = nodes.start({ signal });
  let applied: string | undefined;
  let warned = '';
  const work = async () => {
    const { peers, ignored } = selectPeers(nodes.list(), local);
    if (ignored.join() !== warned) {
      warned = ignored.join();
      if (warned !== '') log.warn({ ignored }, 'Cannot connect guests with those of some nodes');
    }
    if (peers.join() === applied) return;
    applied = undefined;
    await setPeers(local, peers);
    applied = peers.join();
  };
  const readRules = new ReadRules(READS);
  const queue = new WorkQueue({
    clock,
    backoff: BACKOFF,
    work: async () => {
      await readRules.run(work);
      return {};
    },
    onError: (_, err, { delayMs }) => {
      if (!signal.aborted)
        log.error({ err, delayMs }, 'Cannot connect the default network with other hosts; it will be tried again');
    },
  });
  let isStopped = false;
  let unsubscribe = () => {};
  const follow = () => {
    if (isStopped) return;
    queue.add(WORK);
    unsubscribe = nodes.onChange((_, { old, new: next }) => {
      if (tunnelOf(old) !== tunnelOf(next)) queue.add(WORK);
    });
  };
  // It only rejects when the agent stops.
  void nodes.waitForSync().then(follow, () => undefined);
  return {
    idle: () => queue.idle(),
    async stop() {
      isStopped = true;
      unsubscribe();
      await queue.shutdown();
      await running;
    },
  };
}

const tunnelOf = (node: Node | undefined) => node?.metadata.annotations?.[TUNNEL_ADDRESS_ANNOTATION];

function parseUsable(text: string): IpAddress | undefined {
  try {
    const { family, value, zone } = parseIpAddress(text);
    const address: IpAddress = { family, value };
    return zone !== '' || UNUSABLE.some((network) => networkContains(network, address)) ? undefined : address;
  } catch {
    return undefined;
  }
}
