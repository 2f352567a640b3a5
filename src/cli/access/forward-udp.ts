/** A local UDP port: each sender gets a stream to the guest of its own, in which a message is a datagram. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import type { ForwardOptions, Forwarding } from '#cli/access/forward-tcp.ts';
import { CommandError } from '#cli/flags.ts';
import { messageOf } from '#cli/message-of.ts';
import type { Clock } from '#lib/clock.ts';
import type { WebSocketStream } from '#lib/websocket.ts';
import { isIPv6 } from 'node:net';

const MAX_SENDERS = 256;
/** Nobody tells that a sender has gone. */
const IDLE_MS = 120_000;
/** Before the stream is there; datagrams may be lost, memory may not. */
const MAX_WAITING = 64;

interface Sender {
  readonly waiting: Buffer[];
  stream?: WebSocketStream;
  stopTimer(): void;
}

/** Rejects with CommandError where it cannot listen. */
export async function forwardUdp(options: ForwardOptions & { readonly clock: Clock }): Promise<Forwarding> {
  const { address, port, report, clock } = options;
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  const senders = new Map<string, Sender>();
  const forget = (key: string) => {
    const sender = senders.get(key);
    senders.delete(key);
    sender?.stopTimer();
    sender?.stream?.destroy();
  };
  const begin = (key: string, { address: host, port: from }: RemoteInfo): Sender => {
    const sender: Sender = { waiting: [], stopTimer: () => {} };
    senders.set(key, sender);
    const connected = async () => {
      const stream = await options.open();
      if (senders.get(key) !== sender) return void stream.destroy();
      sender.stream = stream;
      stream.on('error', (error) => report(`error handling connection for ${port.local}: ${error.message}`));
      stream.once('close', () => forget(key));
      stream.on('data', (datagram: Buffer) => socket.send(datagram, from, host));
      for (const datagram of sender.waiting.splice(0)) stream.write(datagram);
    };
    connected().catch((error: unknown) => {
      forget(key);
      report(`error handling connection for ${port.local}: ${messageOf(error)}`);
    });
    return sender;
  };
  socket.on('message', (datagram, from) => {
    const key = `${from.address} ${from.port}`;
    if (!senders.has(key) && senders.size >= MAX_SENDERS) return;
    const sender = senders.get(key) ?? begin(key, from);
    sender.stopTimer();
    sender.stopTimer = clock.after(IDLE_MS, () => forget(key));
    // What the stream cannot take now is lost, as on any way of a datagram.
    if (sender.stream !== undefined) {
      if (!sender.stream.writableNeedDrain) sender.stream.write(datagram);
    } else if (sender.waiting.length < MAX_WAITING) sender.waiting.push(datagram);
  });
  socket.bind(port.local, address);
  try {
    await once(socket, 'listening');
  } catch (cause) {
    throw new CommandError(`Cannot listen on ${address}:${port.local}: ${messageOf(cause)}`, { cause });
  }
  socket.on('error', (error) => report(`error handling connection for ${port.local}: ${error.message}`));
  return {
    port: socket.address().port,
    close() {
      for (const key of [...senders.keys()]) forget(key);
      socket.close();
    },
  };
}
