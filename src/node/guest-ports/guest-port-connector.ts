/** Connects to ports of this node's guests (guest-route.ts). */
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import type { AgentReader } from '#node/guest-agent/agent-reader.ts';
import {
  findNeighbourMac,
  findGuestRoute,
  type NodeNetworks,
  type BridgeRoute,
  type PodRoute,
} from '#node/guest-ports/guest-route.ts';
import type { GuestAccess, GuestPort, OpenPortOptions } from '#node/hypervisor/guest-access.ts';
import { openDatagramStream } from '#node/hypervisor/datagram-stream.ts';
import type { PodNetworks } from '#node/network/pod-networks.ts';
import {
  GuestPortError,
  HypervisorError,
  portNoAnswerError,
  portRefusedError,
  type Hypervisor,
} from '#node/hypervisor/hypervisor.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** Limit per guest, the same as for connections through QEMU. */
const MAX_CONNECTIONS = 256;

interface GuestPortConnectorParts {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'inspect' | 'onChange' | 'openPort'>;
  readonly agents: Pick<AgentReader, 'get'>;
  readonly clock: Clock;
  /** The networks of guests; undefined if guests have no network namespaces on this node. */
  readonly podNetworks?: Pick<PodNetworks, 'get'> | undefined;
  /** Networks and ARP table of the node; by default those of this machine. */
  readonly networks?: () => NodeNetworks;
  readonly neighbours?: () => Promise<string>;
}

export class GuestPortConnector implements Pick<GuestAccess, 'openPort'> {
  readonly #parts: GuestPortConnectorParts;
  /** Connections over bridges by domain id, including those in progress. */
  readonly #open = new Map<string, Set<Socket>>();
  readonly #unsubscribe: () => void;

  constructor(parts: GuestPortConnectorParts) {
    this.#parts = parts;
    this.#unsubscribe = parts.hypervisor.onChange((id) => {
      const { state } = parts.hypervisor.get(id)?.current ?? { state: 'ended' };
      if (state === 'ended') this.#closeAll(id);
    });
  }

  /**
   * Opens a connection like Hypervisor.openPort; it ends with the guest. The message of a permanent HypervisorError says
   * what would help.
   */
  async openPort(id: string, port: GuestPort, options: OpenPortOptions = {}): Promise<Duplex> {
    const { hypervisor, agents, podNetworks, networks = networkInterfaces } = this.#parts;
    const hasEnded = hypervisor.get(id)?.current.state === 'ended';
    const definition = hasEnded ? undefined : hypervisor.inspect(id)?.definition;
    // Without a guest, the hypervisor throws the error.
    const route =
      definition && findGuestRoute(definition, agents.get(id)?.interfaces, networks(), podNetworks?.get(id));
    if (route === undefined || route.is === 'forward') return await hypervisor.openPort(id, port, options);
    const portError = (why: string, permanent = false) =>
      new HypervisorError(`Cannot connect to a port of domain "${definition?.name}": ${why}`, { permanent });
    if (route.is === 'none') throw portError(route.why, true);
    if (port.protocol === 'udp') {
      if (route.is === 'pod') return await openDatagramStream(route.address, port.port);
      throw portError('UDP needs an interface in user mode (masquerade), and the guest has none; add one', true);
    }
    const open = this.#open.get(id) ?? new Set<Socket>();
    if (open.size >= MAX_CONNECTIONS) throw portError(`${MAX_CONNECTIONS} connections are open already; close some`);
    this.#open.set(id, open);
    const from = route.is === 'bridge' ? { localAddress: route.from } : {};
    const socket = connect({ host: route.address, port: port.port, ...from, noDelay: true });
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      if (open.size === 0 && this.#open.get(id) === open) this.#open.delete(id);
    });
    try {
      await this.#waitForConnection(socket, route, port.port, options);
      return socket;
    } catch (error) {
      socket.destroy();
      throw error instanceof GuestPortError ? error : portError((error as Error).message);
    }
  }

  stop(): void {
    this.#unsubscribe();
    for (const id of [...this.#open.keys()]) this.#closeAll(id);
  }

  #closeAll(id: string): void {
    for (const socket of this.#open.get(id) ?? []) socket.destroy();
  }

  async #waitForConnection(
    socket: Socket,
    route: BridgeRoute | PodRoute,
    port: number,
    { timeoutMs = CONNECT_TIMEOUT_MS, signal }: OpenPortOptions,
  ): Promise<void> {
    const { clock, neighbours = () => readFile('/proc/net/arp', 'utf8') } = this.#parts;
    const done = Promise.withResolvers<void>();
    const onTimeout = () => done.reject(portNoAnswerError(port, timeoutMs));
    const cancel = clock.after(timeoutMs, onTimeout);
    const onAbort = () => done.reject(new Error('the request was cancelled'));
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    socket.once('connect', () => done.resolve());
    socket.on('error', (error: NodeJS.ErrnoException) => done.reject(connectError(error, port)));
    socket.once('close', () => done.reject(new Error(`the connection to port ${port} was closed`)));
    try {
      await done.promise;
    } finally {
      cancel();
      signal?.removeEventListener('abort', onAbort);
    }
    if (route.is === 'pod') return;
    // A guest that reports the address of another machine must not make the node connect to it.
    const mac = findNeighbourMac(await neighbours(), route);
    if (mac !== route.mac) {
      throw new Error(`its address ${route.address} belongs to another machine (${mac || 'unknown MAC address'})`);
    }
  }
}

function connectError(error: NodeJS.ErrnoException, port: number): Error {
  return error.code === 'ECONNREFUSED' ? portRefusedError(port) : error;
}
