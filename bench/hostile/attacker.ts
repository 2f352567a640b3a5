/** A user who sends expensive requests, and connections without a user, in a process of its own. */
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { attacksIn, preparationOf, type HostileRequest } from '#test/load/hostile-requests.ts';
import { serveJobs } from '../jobs.ts';
import { pause } from '../pause.ts';
import type { Target } from '../raw-h2.ts';
import { anonymousAttacks, type AnonymousAttack } from './anonymous-attacks.ts';
import { PREPARATION } from './preparation.ts';

export type AttackerJob = { readonly target: Target } & (
  | {
      readonly kind: 'requests';
      readonly name: string;
      readonly namespace: string;
      readonly token: string;
      /** The revision before the preparation. */
      readonly oldRevision: number;
    }
  | { readonly kind: 'connections'; readonly name: string }
);

/** The answers by status, and the time of the attack. */
export interface AttackResult {
  readonly answers: Readonly<Record<string, number>>;
  readonly seconds: number;
}

const PREPARED_AT_ONCE = 50;
const CONNECTIONS_AT_ONCE = 100;
const HOLD_MS = 4000;

serveJobs(async (job: AttackerJob): Promise<AttackResult> => {
  const before = performance.now();
  const answers = job.kind === 'requests' ? await sendRequests(job) : await openConnections(job);
  return { answers, seconds: (performance.now() - before) / 1000 };
});

async function sendRequests(job: Extract<AttackerJob, { kind: 'requests' }>): Promise<Record<string, number>> {
  if (job.name === PREPARATION) return prepare(job);
  const { requests } = attacksIn(job.namespace)[job.name]!;
  const most = Math.max(...requests.map(({ copies = 1 }) => copies));
  const sessions = Array.from({ length: most }, () => openSession(job.target));
  const answers: Record<string, number> = {};
  const open: Promise<string>[] = [];
  for (const request of requests) {
    const sent = sessions.slice(0, request.copies ?? 1).map((session) => send(session, request, job));
    // Watches stay open until they time out.
    if (request.events === undefined) count(answers, await Promise.all(sent));
    else open.push(...sent);
  }
  count(answers, await Promise.all(open));
  // Controllers react meanwhile.
  await pause(500);
  for (const session of sessions) session.destroy();
  return answers;
}

function count(answers: Record<string, number>, statuses: readonly string[]): void {
  for (const status of statuses) answers[status] = (answers[status] ?? 0) + 1;
}

/** Creates the objects that some attacks need. */
async function prepare(job: Extract<AttackerJob, { kind: 'requests' }>): Promise<Record<string, number>> {
  const requests = preparationOf(job.namespace);
  const session = openSession(job.target);
  const answers: Record<string, number> = {};
  for (let start = 0; start < requests.length; start += PREPARED_AT_ONCE) {
    const batch = requests.slice(start, start + PREPARED_AT_ONCE);
    count(answers, await Promise.all(batch.map((request) => send(session, request, job))));
  }
  session.destroy();
  return answers;
}

function openSession({ host, port, ca }: Target): ClientHttp2Session {
  const session = connectHttp2(`https://${host}:${port}`, { ca });
  session.on('error', () => {});
  return session;
}

interface Sender {
  readonly token: string;
  /** The revision before the preparation. */
  readonly oldRevision: number;
}

function send(session: ClientHttp2Session, request: HostileRequest, { token, oldRevision }: Sender) {
  const { method, url, body, contentType, accept = 'application/json' } = request;
  const headers = {
    ':method': method,
    ':path': url.replace('=OLD', `=${oldRevision}`),
    accept,
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
