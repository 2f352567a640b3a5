/** Asks a guest once, as its probe says. What it answers is a verdict, never an error. */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { Probe } from '#api/domain/probe.ts';
import { isRecord } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { VERSION } from '#lib/version.ts';
import type { GuestLines } from '#node/hypervisor/guest-lines.ts';
import { HypervisorError, type Hypervisor } from '#node/hypervisor/hypervisor.ts';

export interface ProbeAnswer {
  readonly answered: boolean;
  /** Why not, for people. */
  readonly message: string;
  /** There is no way to ask it: nothing is known of the guest. */
  readonly cannotAsk?: true;
}

export interface ProbeParts {
  readonly hypervisor: Pick<Hypervisor, 'askAgent'>;
  readonly ports: Pick<GuestLines, 'openPort'>;
  readonly clock: Clock;
}

const MAX_MESSAGE = 512;
const LOOK_AGAIN_MS = 200;
const FINE: ProbeAnswer = { answered: true, message: '' };

export async function runProbe(id: string, probe: Probe, timeoutMs: number, parts: ProbeParts): Promise<ProbeAnswer> {
  const { clock } = parts;
  const ended = new AbortController();
  let cancel: (() => void) | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    cancel = clock.after(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
  });
  try {
    await Promise.race([late, ask(id, probe, { timeoutMs, signal: ended.signal }, parts)]);
    return FINE;
  } catch (error) {
    const message = (error instanceof Error ? error.message : String(error)).slice(0, MAX_MESSAGE);
    const cannotAsk = error instanceof HypervisorError && error.permanent;
    return { answered: false, message, ...(cannotAsk && { cannotAsk }) };
  } finally {
    cancel?.();
    ended.abort();
  }
}

interface Asking {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

async function ask(id: string, probe: Probe, asking: Asking, parts: ProbeParts): Promise<void> {
  const { hypervisor } = parts;
  const { exec, httpGet, tcpSocket } = probe;
  if (httpGet !== undefined) return askHttp(await open(id, Number(httpGet.port), asking, parts), httpGet, asking);
  if (tcpSocket !== undefined) return void (await open(id, Number(tcpSocket.port), asking, parts)).destroy();
  if (exec !== undefined) return runCommand(id, exec.command ?? [], asking, parts);
  await hypervisor.askAgent(id, { execute: 'guest-ping' }, { timeoutMs: asking.timeoutMs });
}

async function open(id: string, port: number, asking: Asking, { ports }: ProbeParts): Promise<Duplex> {
  const stream = await ports.openPort(id, { port, protocol: 'tcp' }, asking);
  stream.on('error', () => undefined);
  // Nobody waits for it any more.
  if (asking.signal.aborted) stream.destroy();
  asking.signal.addEventListener('abort', () => stream.destroy(), { once: true });
  return stream;
}

/** As the kubelet: certificates are not looked at, redirects not followed, and from 200 to 399 all is well. */
async function askHttp(stream: Duplex, httpGet: NonNullable<Probe['httpGet']>, { signal }: Asking): Promise<void> {
  const { path = '/', scheme, httpHeaders = [] } = httpGet;
  const socket = scheme === 'HTTPS' ? connectTls({ socket: stream, rejectUnauthorized: false }) : stream;
  const headers: Record<string, string> = {
    host: 'localhost',
    'user-agent': `kube-probe/selfsame-${VERSION}`,
    accept: '*/*',
    connection: 'close',
  };
  for (const { name = '', value = '' } of httpHeaders) headers[name.toLowerCase()] = value;
  const status = await new Promise<number>((resolve, reject) => {
    const asked = request({
      path: path.startsWith('/') ? path : `/${path}`,
      headers,
      signal,
      // A Duplex is all that it needs of a socket.
      createConnection: () => socket,
    });
    socket.on('error', reject);
    asked.on('error', reject);
    asked.on('response', (response) => {
      response.on('error', () => undefined);
      resolve(response.statusCode ?? 0);
    });
    asked.end();
  });
  stream.destroy();
  if (status < 200 || status >= 400) throw new Error(`HTTP probe failed with statuscode: ${status}`);
}

async function runCommand(
  id: string,
  [path = '', ...arg]: readonly string[],
  { timeoutMs, signal }: Asking,
  { hypervisor, clock }: ProbeParts,
): Promise<void> {
  const begun = await hypervisor.askAgent(
    id,
    { execute: 'guest-exec', arguments: { path, arg, 'capture-output': true } },
    { timeoutMs },
  );
  const pid = isRecord(begun) ? begun['pid'] : undefined;
  if (typeof pid !== 'number') throw new Error('the guest agent did not say which process it started');
  for (;;) {
    if (signal.aborted) return;
    const status = await hypervisor.askAgent(id, { execute: 'guest-exec-status', arguments: { pid } }, { timeoutMs });
    const { exited, exitcode, 'out-data': out, 'err-data': err } = isRecord(status) ? status : {};
    if (exited === true) {
      if (exitcode === 0) return;
      const words = [out, err].map(decoded).filter((text) => text !== '');
      throw new Error(
        `command "${path}" ended with ${typeof exitcode === 'number' ? exitcode : 'a signal'}: ${words.join(' ')}`,
      );
    }
    await new Promise<void>((resolve) => clock.after(LOOK_AGAIN_MS, resolve));
  }
}

function decoded(data: unknown): string {
  if (typeof data !== 'string') return '';
  return Buffer.from(data.slice(0, 4 * MAX_MESSAGE), 'base64')
    .toString('utf8')
    .trim();
}
