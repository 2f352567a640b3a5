/**
 * A program that a test starts in a network namespace. It answers on a TCP and a UDP port with its name and the address of
 * its client, and connects to others on request: one JSON line on stdin, one on stdout.
 */
import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { connect, createServer, isIPv6 } from 'node:net';
import { argv, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';

const [, , name = '', portText = '0'] = argv;
const port = Number(portText);
const TIMEOUT_MS = 500;

const answer = (address = '') => `${name} ${address.replace(/^::ffff:/, '')}`;

createServer((socket) => socket.end(answer(socket.remoteAddress))).listen({ port, host: '::' });
const udp = createSocket({ type: 'udp6', ipv6Only: false });
udp.on('message', (_, peer) => udp.send(answer(peer.address), peer.port, peer.address));
udp.bind({ port, address: '::' });

interface Request {
  readonly id: number;
  readonly op: 'tcp' | 'udp' | 'dns';
  readonly host: string;
  readonly port: number;
  readonly name?: string;
  readonly type?: 'A' | 'AAAA';
}

function askTcp({ host, port: to }: Request): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ host, port: to });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(Object.assign(new Error('timeout'), { code: 'timeout' })));
    socket.on('data', (bytes) => (text += bytes.toString()));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('end', () => resolve(text));
  });
}

function askUdp({ host, port: to }: Request): Promise<string> {
  return new Promise((resolve) => {
    const socket: Socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
    const finish = (text: string) => {
      clearTimeout(timer);
      socket.close();
      resolve(text);
    };
    const timer = setTimeout(() => finish('timeout'), TIMEOUT_MS);
    socket.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
    socket.on('message', (bytes) => finish(bytes.toString()));
    socket.send('?', to, host);
  });
}

async function askDns({ host, port: at, name: asked = '', type = 'A' }: Request): Promise<string> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 });
  resolver.setServers([`${host}:${at}`]);
  const found = type === 'A' ? resolver.resolve4(asked) : resolver.resolve6(asked);
  return await found.then(
    (addresses) => addresses.sort().join(','),
    (error: NodeJS.ErrnoException) => error.code ?? error.message,
  );
}

const ASK = { tcp: askTcp, udp: askUdp, dns: askDns };

createInterface({ input: stdin }).on('line', (line) => {
  const request = JSON.parse(line) as Request;
  void ASK[request.op](request).then((text) => stdout.write(`${JSON.stringify({ id: request.id, text })}\n`));
});
stdin.on('end', () => process.exit(0));
stdout.write('{"id":0,"text":"ready"}\n');
