/** Listens on a local UDP port. Each sender gets its own stream to the guest, in which a message is a datagram. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { connectionError, type ForwardOptions, type Forwarding } from '#cli/commands/access/forward-tcp.ts';
import { explainFailure } from '#lib/command-line/command-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';
import { isIPv6 } from 'node:net';

const MAX_SENDERS = 256;
/** A sender that is idle for this time is removed, because UDP has no end of a connection. */
const IDLE_MS = 120_000;
/** The maximum number of datagrams that are kept until the stream is open. Others are dropped. */
const MAX_WAITING = 64;

interface Sender {
  readonly waiting: Buffer[];
  stream?: WebSocketStream;
  stopTimer(): void;
}

/** Rejects with CommandError if it cannot listen. */
export async function forwardUdp(options: ForwardOptions & { readonly clock: Clock }): Promise<Forwarding> {
  const { address, port, report, clock } = options;
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  const senders = new Map<string, Sender>();
  const removeSender = (key: string) => {
    const sender = senders.get(key);
    senders.delete(key);
    sender?.stopTimer();
    sender?.stream?.destroy();
  };
  const addSender = (key: string, { address: host, port: from }: RemoteInfo): Sender => {
    const sender: Sender = { waiting: [], stopTimer: () => {} };
    senders.set(key, sender);
    const connectSender = async () => {
      const stream = await options.open();
      if (senders.get(key) !== sender) return void stream.destroy();
      sender.stream = stream;
      stream.on('error', (error) => report(connectionError(port, error)));
      stream.once('close', () => removeSender(key));
      stream.on('data', (datagram: Buffer) => socket.send(datagram, from, host));
      for (const datagram of sender.waiting.splice(0)) stream.write(datagram);
    };
    connectSender().catch((error: unknown) => {
      removeSender(key);
      report(connectionError(port, error));
    });
    return sender;
  };
  socket.on('message', (datagram, from) => {
    const key = `${from.address} ${from.port}`;
    if (!senders.has(key) && senders.size >= MAX_SENDERS) return;
    const sender = senders.get(key) ?? addSender(key, from);
    sender.stopTimer();
    sender.stopTimer = clock.after(IDLE_MS, () => removeSender(key));
    // A datagram is dropped if the stream cannot accept it now.
    if (sender.stream !== undefined) {
      if (!sender.stream.writableNeedDrain) sender.stream.write(datagram);
    } else if (sender.waiting.length < MAX_WAITING) sender.waiting.push(datagram);
  });
  socket.bind(port.local, address);
  await explainFailure(`Cannot listen on ${address}:${port.local}: `, once(socket, 'listening'));
  socket.on('error', (error) => report(connectionError(port, error)));
  return {
    port: socket.address().port,
    close() {
      for (const key of [...senders.keys()]) removeSender(key);
      socket.close();
    },
  };
}
