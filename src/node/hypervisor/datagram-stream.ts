import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { Duplex } from 'node:stream';

const MAX_DATAGRAMS = 256;

/** Opens a stream whose chunks are datagrams to and from one port. */
export async function openDatagramStream(address: string, port: number): Promise<Duplex> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  const connected = once(socket, 'connect');
  socket.connect(port, address);
  try {
    await connected;
  } catch (error) {
    socket.close();
    throw error;
  }
  const stream = new Duplex({
    readableObjectMode: true,
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => socket.send(chunk, (error) => done(error)),
    destroy: (error, done) => {
      socket.close();
      done(error);
    },
  });
  // Unread datagrams are dropped, as usual for UDP.
  socket.on('message', (message) => stream.readableLength < MAX_DATAGRAMS && stream.push(message));
  socket.on('error', (error) => stream.destroy(error));
  stream.on('error', () => undefined);
  return stream;
}
