/**
 * Connections to ports of a guest whose network is inside QEMU: QEMU listens on this host's loopback and forwards to
 * the guest. A forward is added for one connection and removed as soon as the connection exists, so that no other
 * process can use it. `reconcile` removes forwards that an earlier node agent left.
 *
 *   hostfwd_add port 0 ─► read the chosen port (info usernet) ─► connect ─► wait until the guest accepts (info usernet)
 *                                                                              ─► hostfwd_remove
 */
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import type { DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { openDatagramStream } from '#node/hypervisor/datagram-stream.ts';
import type { GuestPort, OpenPortOptions } from '#node/hypervisor/guest-access.ts';
import { HypervisorError, portNoAnswerError, portRefusedError } from '#node/hypervisor/hypervisor.ts';
import { netdevName } from '#node/hypervisor/qemu/arguments/interface.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { parseUsernet, type UsernetEntry } from '#node/hypervisor/qemu/guest-io/usernet.ts';

const LOOPBACK = '127.0.0.1';
const ACCEPT_MS = 10_000;
const POLL_INTERVAL_MS = 50;
/** Each connection costs QEMU a socket, and no known use needs more. */
const MAX_OPEN = 256;

export interface GuestPortsOptions {
  readonly clock: Clock;
  readonly withQmp: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
  readonly definition: () => DomainDefinition;
}

export class GuestPorts {
  readonly #options: GuestPortsOptions;
  readonly #open = new Set<Duplex>();
  /** The number of connections that are being opened. */
  #opening = 0;
  /** Keys of the forwards of this process. */
  readonly #forwards = new Set<string>();
  /** Serializes the changes: a new forward is found by its guest port, so only one may be added at a time. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: GuestPortsOptions) {
    this.#options = options;
  }

  async open(wanted: GuestPort, options: OpenPortOptions = {}): Promise<Duplex> {
    if (this.#open.size + this.#opening >= MAX_OPEN)
      throw new HypervisorError(`${MAX_OPEN} connections to the guest are open already; close one of them`);
    this.#opening++;
    try {
      return await this.#openNow(wanted, options);
    } finally {
      this.#opening--;
    }
  }

  async #openNow(wanted: GuestPort, { timeoutMs = ACCEPT_MS, signal }: OpenPortOptions): Promise<Duplex> {
    const netdev = this.#chooseNetdev();
    const host = await this.#enqueue(async () => {
      // The signal may have aborted while other forwards were added.
      signal?.throwIfAborted();
      const hostPort = await this.#forward(netdev, wanted);
      this.#forwards.add(forwardKey({ ...wanted, hostPort }));
      return hostPort;
    });
    const remove = async () => {
      this.#forwards.delete(forwardKey({ ...wanted, hostPort: host }));
      await this.#remove(netdev, { ...wanted, port: host });
    };
    const opened =
      wanted.protocol === 'udp'
        ? openDatagramStream(LOOPBACK, host)
        : this.#waitUntilAccepted(host, wanted, { timeoutMs, signal });
    let stream: Duplex;
    try {
      stream = await opened;
    } catch (error) {
      await remove().catch(() => undefined);
      throw error;
    }
    this.#open.add(stream);
    stream.once('close', () => {
      this.#open.delete(stream);
      if (wanted.protocol === 'udp') void remove().catch(() => undefined);
    });
    // A UDP forward is needed as long as the connection; a TCP forward is needed only to connect.
    if (wanted.protocol === 'tcp') await remove().catch(() => undefined);
    return stream;
  }

  /** Removes forwards that an earlier node agent left; its connections are gone. Keeps our own. */
  async reconcile(): Promise<void> {
    if (this.#userInterfaces().length === 0) return;
    await this.#enqueue(async () => {
      for (const entry of await this.#readUsernet()) {
        const { netdev, protocol, hostPort } = entry;
        if (!isForward(entry) || netdev === undefined || this.#forwards.has(forwardKey(entry))) continue;
        await this.#remove(netdev, { port: hostPort, protocol });
      }
    });
  }

  close(): void {
    for (const stream of this.#open) stream.destroy();
  }

  #userInterfaces(): InterfaceDevice[] {
    const { devices } = this.#options.definition();
    return devices.flatMap((device) => (device.type === 'interface' && device.backend.type === 'user' ? device : []));
  }

  #chooseNetdev(): string {
    const interfaces = this.#userInterfaces();
    const first = interfaces.find(({ link }) => link !== 'down') ?? interfaces[0];
    if (first !== undefined) return netdevName(first);
    const why = 'the guest has no interface in user mode; connect to its own address on the bridge';
    throw new HypervisorError(why, { permanent: true });
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  /** Adds a forward and returns the port of this host that QEMU chose. */
  async #forward(netdev: string, { port, protocol }: GuestPort): Promise<number> {
    const before = new Set((await this.#readUsernet()).map(forwardKey));
    const output = await this.#runMonitorCommand(`hostfwd_add ${netdev} ${protocol}:${LOOPBACK}:0-:${port}`);
    if (output.trim() !== '') throw new HypervisorError(`QEMU cannot forward port ${port}: ${output.trim()}`);
    const added = (await this.#readUsernet()).find(
      (entry) => isForward(entry, protocol) && entry.guestPort === port && !before.has(forwardKey(entry)),
    );
    if (added === undefined) throw new HypervisorError(`QEMU does not report its forward to port ${port}`);
    return added.hostPort;
  }

  /**
   * Waits until the guest accepts. The kernel of this host accepts for QEMU, so only QEMU knows whether the guest did.
   */
  async #waitUntilAccepted(
    host: number,
    { port }: GuestPort,
    { timeoutMs, signal }: OpenPortOptions & { timeoutMs: number },
  ) {
    const { clock } = this.#options;
    const socket = connect({ host: LOOPBACK, port: host, noDelay: true });
    let closed = false;
    socket.on('error', () => socket.destroy());
    socket.once('close', () => (closed = true));
    // Without a listener for `readable`, the end of the stream is not reported. The data stays in the buffer for the
    // caller.
    const onReadable = () => undefined;
    socket.on('readable', onReadable);
    const endAt = clock.elapsed() + timeoutMs;
    try {
      for (;;) {
        signal?.throwIfAborted();
        if (closed) throw portRefusedError(port);
        const entries = await this.#readUsernet();
        const connection = entries.find(
          (entry) => entry.hostPort === host && entry.protocol === 'tcp' && !isForward(entry),
        );
        if (connection !== undefined && ACCEPTED.has(connection.state)) return releaseSocket(socket, onReadable);
        if (clock.elapsed() >= endAt) throw portNoAnswerError(port, timeoutMs);
        await new Promise<void>((resolve) => clock.after(POLL_INTERVAL_MS, resolve));
      }
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  async #remove(netdev: string, { port, protocol }: GuestPort): Promise<void> {
    await this.#runMonitorCommand(`hostfwd_remove ${netdev} ${protocol}:${LOOPBACK}:${port}`);
  }

  async #readUsernet(): Promise<UsernetEntry[]> {
    return parseUsernet(await this.#runMonitorCommand('info usernet'));
  }

  #runMonitorCommand(line: string): Promise<string> {
    const args = { 'command-line': line };
    return this.#options.withQmp('reach a port of', async (qmp) =>
      String(await qmp.execute('human-monitor-command', args)),
    );
  }
}

/** Includes closing states: a guest that closed the connection had accepted it. */
const ACCEPTED: ReadonlySet<string> = new Set([
  'ESTABLISHED',
  'CLOSE_WAIT',
  'FIN_WAIT_1',
  'FIN_WAIT_2',
  'CLOSING',
  'TIME_WAIT',
  'LAST_ACK',
]);

const forwardKey = ({ protocol, hostPort }: Pick<UsernetEntry, 'protocol' | 'hostPort'>) => `${protocol} ${hostPort}`;

function isForward({ state, protocol }: UsernetEntry, of = protocol): boolean {
  return state === 'HOST_FORWARD' && protocol === of;
}

/** Hands the socket to the caller. Its errors are handled already. */
function releaseSocket(socket: Socket, onReadable: () => void): Socket {
  socket.removeListener('readable', onReadable);
  return socket;
}
