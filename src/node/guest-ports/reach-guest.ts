/** Ports of this node's guests: each by the way that there is to it (way-to-guest.ts). */
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import type { AgentReader } from '#node/guest-agent/agent-reader.ts';
import { neighbourMac, wayToGuest, type NodeNetworks, type OverBridge } from '#node/guest-ports/way-to-guest.ts';
import type { GuestLines, GuestPort, OpenPortOptions } from '#node/hypervisor/guest-lines.ts';
import { HypervisorError, type Hypervisor } from '#node/hypervisor/hypervisor.ts';

const ACCEPT_MS = 10_000;
/** For each guest, as through QEMU. */
const MAX_OPEN = 256;

export interface ReachParts {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'inspect' | 'onChange' | 'openPort'>;
  readonly agents: Pick<AgentReader, 'get'>;
  readonly clock: Clock;
  /** What the node has, and knows of its neighbours; those of this machine unless set. */
  readonly networks?: () => NodeNetworks;
  readonly neighbours?: () => Promise<string>;
}

export class GuestReach implements Pick<GuestLines, 'openPort'> {
  readonly #parts: ReachParts;
  /** By the id of the domain: connections over bridges, also those that are not accepted yet. */
  readonly #open = new Map<string, Set<Socket>>();
  readonly #leave: () => void;

  constructor(parts: ReachParts) {
    this.#parts = parts;
    this.#leave = parts.hypervisor.onChange((id) => {
      const { state } = parts.hypervisor.get(id)?.current ?? { state: 'ended' };
      if (state === 'ended') this.#end(id);
    });
  }

  /** As of the hypervisor, with whose connections they end alike. A HypervisorError that is `permanent` says what would help. */
  async openPort(id: string, port: GuestPort, options: OpenPortOptions = {}): Promise<Duplex> {
    const { hypervisor, agents, networks = networkInterfaces } = this.#parts;
    const hasEnded = hypervisor.get(id)?.current.state === 'ended';
    const definition = hasEnded ? undefined : hypervisor.inspect(id)?.definition;
    // Where there is no such guest any more, the hypervisor says so.
    const way = definition && wayToGuest(definition, agents.get(id)?.interfaces, networks());
    if (way === undefined || way.is === 'forward') return await hypervisor.openPort(id, port, options);
    const cannot = (why: string, permanent = false) =>
      new HypervisorError(`Cannot reach a port of domain "${definition?.name}": ${why}`, { permanent });
    if (way.is === 'none') throw cannot(way.why, true);
    if (port.protocol === 'udp') {
      throw cannot('datagrams go only through an interface in user mode (masquerade), and it has none', true);
    }
    const open = this.#open.get(id) ?? new Set<Socket>();
    if (open.size >= MAX_OPEN) throw cannot(`${MAX_OPEN} connections are open already`);
    this.#open.set(id, open);
    const socket = connect({ host: way.address, port: port.port, localAddress: way.from, noDelay: true });
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      if (open.size === 0 && this.#open.get(id) === open) this.#open.delete(id);
    });
    try {
      await this.#accepted(socket, way, port.port, options);
      return socket;
    } catch (error) {
      socket.destroy();
      throw cannot((error as Error).message);
    }
  }

  stop(): void {
    this.#leave();
    for (const id of [...this.#open.keys()]) this.#end(id);
  }

  #end(id: string): void {
    for (const socket of this.#open.get(id) ?? []) socket.destroy();
  }

  async #accepted(
    socket: Socket,
    way: OverBridge,
    port: number,
    { timeoutMs = ACCEPT_MS, signal }: OpenPortOptions,
  ): Promise<void> {
    const { clock, neighbours = () => readFile('/proc/net/arp', 'utf8') } = this.#parts;
    const done = Promise.withResolvers<void>();
    const late = () => done.reject(new Error(`port ${port} did not answer within ${timeoutMs} ms`));
    const cancel = clock.after(timeoutMs, late);
    const left = () => done.reject(new Error('nobody waits for it any more'));
    signal?.addEventListener('abort', left, { once: true });
    if (signal?.aborted === true) left();
    socket.once('connect', () => done.resolve());
    socket.on('error', (error: NodeJS.ErrnoException) => done.reject(fault(error, port)));
    socket.once('close', () => done.reject(new Error(`the connection to port ${port} was closed`)));
    try {
      await done.promise;
    } finally {
      cancel();
      signal?.removeEventListener('abort', left);
    }
    // A guest that tells the address of another machine would have us speak to that one, in the name of the node.
    const mac = neighbourMac(await neighbours(), way);
    if (mac !== way.mac) throw new Error(`its address ${way.address} is another machine's (${mac || 'unknown'})`);
  }
}

function fault(error: NodeJS.ErrnoException, port: number): Error {
  return error.code === 'ECONNREFUSED' ? new Error(`the guest refused the connection to port ${port}`) : error;
}
