/** Runs a probe of a guest once. A failure is a result, never an exception. */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { Probe } from '#api/domain/probe.ts';
import { isRecord } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { VERSION } from '#lib/version.ts';
import type { GuestAccess } from '#node/hypervisor/guest-access.ts';
import { HypervisorError, type Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { errorMessage } from '#lib/error-message.ts';

export interface ProbeResult {
  readonly succeeded: boolean;
  /** Reason of the failure, for the user. */
  readonly message: string;
  /** The probe cannot reach the guest at all, so the result says nothing about it. */
  readonly isUnreachable?: true;
}

interface ProbeParts {
  readonly hypervisor: Pick<Hypervisor, 'askAgent'>;
  readonly ports: Pick<GuestAccess, 'openPort'>;
  readonly clock: Clock;
}

const MAX_MESSAGE_LENGTH = 512;
const POLL_INTERVAL_MS = 200;
const SUCCESS: ProbeResult = { succeeded: true, message: '' };

export async function runProbe(id: string, probe: Probe, timeoutMs: number, parts: ProbeParts): Promise<ProbeResult> {
  const { clock } = parts;
  const ended = new AbortController();
  let cancel: (() => void) | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    cancel = clock.after(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
  });
  try {
    await Promise.race([timeout, sendProbe(id, probe, { timeoutMs, signal: ended.signal }, parts)]);
    return SUCCESS;
  } catch (error) {
    const message = errorMessage(error).slice(0, MAX_MESSAGE_LENGTH);
    const isUnreachable = error instanceof HypervisorError && error.permanent;
    return { succeeded: false, message, ...(isUnreachable && { isUnreachable }) };
  } finally {
    cancel?.();
    ended.abort();
  }
}

interface ProbeLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

async function sendProbe(id: string, probe: Probe, limits: ProbeLimits, parts: ProbeParts): Promise<void> {
  const { hypervisor } = parts;
  const { exec, httpGet, tcpSocket } = probe;
  if (httpGet !== undefined)
    return sendHttpProbe(await openPort(id, Number(httpGet.port), limits, parts), httpGet, limits);
  if (tcpSocket !== undefined) return void (await openPort(id, Number(tcpSocket.port), limits, parts)).destroy();
  if (exec !== undefined) return runCommand(id, exec.command ?? [], limits, parts);
  await hypervisor.askAgent(id, { execute: 'guest-ping' }, { timeoutMs: limits.timeoutMs });
}

async function openPort(id: string, port: number, limits: ProbeLimits, { ports }: ProbeParts): Promise<Duplex> {
  const stream = await ports.openPort(id, { port, protocol: 'tcp' }, limits);
  stream.on('error', () => undefined);
  // The probe has timed out meanwhile.
  if (limits.signal.aborted) stream.destroy();
  limits.signal.addEventListener('abort', () => stream.destroy(), { once: true });
  return stream;
}

/** Like the kubelet: does not verify certificates or follow redirects, and accepts status codes from 200 to 399. */
async function sendHttpProbe(
  stream: Duplex,
  httpGet: NonNullable<Probe['httpGet']>,
  { signal }: ProbeLimits,
): Promise<void> {
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
    const sent = request({
      path: path.startsWith('/') ? path : `/${path}`,
      headers,
      signal,
      // Node accepts any Duplex as socket.
      createConnection: () => socket,
    });
    socket.on('error', reject);
    sent.on('error', reject);
    sent.on('response', (response) => {
      response.on('error', () => undefined);
      resolve(response.statusCode ?? 0);
    });
    sent.end();
  });
  stream.destroy();
  if (status < 200 || status >= 400) throw new Error(`HTTP probe failed with statuscode: ${status}`);
}

async function runCommand(
  id: string,
  [path = '', ...arg]: readonly string[],
  { timeoutMs, signal }: ProbeLimits,
  { hypervisor, clock }: ProbeParts,
): Promise<void> {
  const started = await hypervisor.askAgent(
    id,
    { execute: 'guest-exec', arguments: { path, arg, 'capture-output': true } },
    { timeoutMs },
  );
  const pid = isRecord(started) ? started['pid'] : undefined;
  if (typeof pid !== 'number') throw new Error('the guest agent did not return the pid of the command');
  for (;;) {
    if (signal.aborted) return;
    const status = await hypervisor.askAgent(id, { execute: 'guest-exec-status', arguments: { pid } }, { timeoutMs });
    const { exited, exitcode, 'out-data': out, 'err-data': err } = isRecord(status) ? status : {};
    if (exited === true) {
      if (exitcode === 0) return;
      const output = [out, err].map(decodeOutput).filter((text) => text !== '');
      throw new Error(
        `command "${path}" ended with ${typeof exitcode === 'number' ? `exit code ${exitcode}` : 'a signal'}: ${output.join(' ')}`,
      );
    }
    await new Promise<void>((resolve) => clock.after(POLL_INTERVAL_MS, resolve));
  }
}

function decodeOutput(data: unknown): string {
  if (typeof data !== 'string') return '';
  return Buffer.from(data.slice(0, 4 * MAX_MESSAGE_LENGTH), 'base64')
    .toString('utf8')
    .trim();
}
