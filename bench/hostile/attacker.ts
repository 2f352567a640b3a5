/** A user who sends expensive requests, and connections without a user, in a process of its own. */
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { attacksIn, type HostileRequest } from '#test/load/hostile-requests.ts';
import { serveJobs } from '../jobs.ts';
import { pause } from '../pause.ts';
import type { Target } from '../raw-h2.ts';
import { anonymousAttacks, type AnonymousAttack } from './anonymous-attacks.ts';

export type AttackerJob = { readonly target: Target } & (
  | { readonly kind: 'requests'; readonly name: string; readonly namespace: string; readonly token: string }
  | { readonly kind: 'connections'; readonly name: string }
);

/** The answers by status, and the time of the attack. */
export interface AttackResult {
  readonly answers: Readonly<Record<string, number>>;
  readonly seconds: number;
}

const CONNECTIONS_AT_ONCE = 100;
const HOLD_MS = 4000;

serveJobs(async (job: AttackerJob): Promise<AttackResult> => {
  const before = performance.now();
  const answers = job.kind === 'requests' ? await sendRequests(job) : await openConnections(job);
  return { answers, seconds: (performance.now() - before) / 1000 };
});

async function sendRequests(job: Extract<AttackerJob, { kind: 'requests' }>): Promise<Record<string, number>> {
  const { requests, copies = 1 } = attacksIn(job.namespace)[job.name]!;
  const sessions = Array.from({ length: copies }, () => openSession(job.target));
  const answers: Record<string, number> = {};
  for (const request of requests) {
    for (const status of await Promise.all(sessions.map((session) => send(session, request, job.token)))) {
      answers[status] = (answers[status] ?? 0) + 1;
    }
  }
  // Controllers react meanwhile.
  await pause(500);
  for (const session of sessions) session.destroy();
  return answers;
}

function openSession({ host, port, ca }: Target): ClientHttp2Session {
  const session = connectHttp2(`https://${host}:${port}`, { ca });
  session.on('error', () => {});
  return session;
}

function send(session: ClientHttp2Session, { method, url, body, contentType }: HostileRequest, token: string) {
  const headers = {
    ':method': method,
    ':path': url,
    'content-type': contentType,
    'content-length': body.length,
    authorization: `Bearer ${token}`,
  };
  const stream = session.request(headers, { endStream: body.length === 0 });
  if (body.length > 0) stream.end(body);
  return new Promise<string>((resolve) => {
    let status = 'cut';
    stream.on('response', (received) => (status = String(received[':status'])));
    stream.on('error', () => {});
    stream.on('close', () => resolve(status)).resume();
  });
}

async function openConnections({ target, name }: Extract<AttackerJob, { kind: 'connections' }>) {
  const attack = anonymousAttacks[name]!;
  const open: Socket[] = [];
  for (let count = 0; count < attack.connections; count += CONNECTIONS_AT_ONCE) {
    const batch = Math.min(CONNECTIONS_AT_ONCE, attack.connections - count);
    open.push(...(await Promise.all(Array.from({ length: batch }, () => openOne(target, attack)))));
  }
  if (attack.reopens === true) await Promise.all(open.map((socket) => reopen(socket, target, attack)));
  else await pause(HOLD_MS);
  const held = open.filter((socket) => !socket.destroyed && !socket.closed).length;
  for (const socket of open) socket.destroy();
  return { held, closed: open.length - held };
}

/** Opens another connection whenever the server closes one, until the attack is over. */
async function reopen(first: Socket, target: Target, attack: AnonymousAttack): Promise<void> {
  const until = performance.now() + HOLD_MS;
  for (let socket = first; performance.now() < until; socket = await openOne(target, attack)) {
    // 16 requests are answered; the connection of a client that sends more is closed by the server.
    await Promise.race([once(socket, 'close'), once(socket, 'data'), pause(until - performance.now())]).catch(() => {});
    socket.destroy();
  }
}

async function openOne({ host, port, ca }: Target, { protocol, first, body }: AnonymousAttack): Promise<Socket> {
  const socket =
    protocol === undefined ? connectTcp(port, host) : connectTls({ host, port, ca, ALPNProtocols: [protocol] });
  socket.on('error', () => {});
  await Promise.race([once(socket, protocol === undefined ? 'connect' : 'secureConnect'), once(socket, 'close')]).catch(
    () => {},
  );
  socket.resume();
  if (first !== '') socket.write(first);
  if (body !== undefined) socket.write(body);
  return socket;
}
