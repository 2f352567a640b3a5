/** virtctl console: the user's terminal on the serial console of a guest. */
import { PLAIN_STREAM_PROTOCOL } from '#api/names.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { defineCommand, type Terminal } from '#cli/command.ts';
import { parseInstanceTarget } from '#cli/commands/access/target.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { integerFlag } from '#lib/command-line/flag.ts';
import { sleepAlive } from '#lib/keep-alive.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import { CLOSE_CODES, WebSocketError, type WebSocketStream } from '#lib/websocket/websocket.ts';

const RETRY_MS = 1000;
/** Ctrl-] and, on many keyboards, Ctrl-5. */
const ESCAPE = 0x1d;

export const console = defineCommand({
  name: 'console',
  usage: '(VMI)',
  summary: 'Connect to a console of a virtual machine instance.',
  example: [
    "  # Connect to the console on VirtualMachineInstance 'myvmi':",
    '  virtctl console myvmi',
    '  # Configure one minute timeout (default 5 minutes)',
    '  virtctl console --timeout=1 myvmi',
  ].join('\n'),
  flags: {
    timeout: integerFlag(
      { name: 'timeout', help: 'The number of minutes to wait for the virtual machine instance to be ready.' },
      5,
    ),
  },
  args: 1,
  async run({ args: [target = ''], flags, connect, report, terminal, clock }) {
    const { name, namespace } = parseInstanceTarget(target);
    const api = await connect();
    const path = verbPath('virtualmachineinstances', namespace ?? api.namespace, name, 'console');
    const stream = await connectWhenReady(api, { path, name }, clock, flags.timeout * 60_000);
    report(`Successfully connected to ${name} console. Press Ctrl+] or Ctrl+5 to exit console.`);
    await attach(stream, terminal);
  },
});

/** Connects to the console. Retries while the server answers 400, which means that the guest does not run yet. */
async function connectWhenReady(
  api: ApiConnection,
  { path, name }: { readonly path: string; readonly name: string },
  clock: Clock,
  timeoutMs: number,
): Promise<WebSocketStream> {
  const until = clock.now() + timeoutMs;
  for (;;) {
    try {
      return await api.openWebSocket(path, [PLAIN_STREAM_PROTOCOL]);
    } catch (error) {
      if (!isApiError(error, 'BadRequest')) {
        throw new CommandError(`Cannot connect to the console of VMI ${name}: ${errorMessage(error)}`, {
          cause: error,
        });
      }
      if (clock.now() + RETRY_MS > until) {
        const why = `Cannot connect to the console of VMI ${name} in time: ${error.message}`;
        throw new CommandError(why, { cause: error });
      }
    }
    await sleepAlive(clock, RETRY_MS);
  }
}

/** Connects terminal and console until either side ends or the user leaves. */
async function attach(stream: WebSocketStream, { stdin, stdout }: Terminal): Promise<void> {
  const raw = stdin.isTTY === true;
  if (raw) stdin.setRawMode?.(true);
  try {
    await new Promise<void>((resolve, reject) => {
      stream.on('data', (chunk: Buffer) => {
        if (!stdout.write(chunk)) {
          stream.pause();
          stdout.once('drain', () => stream.resume());
        }
      });
      stream.once('end', resolve);
      stream.once('error', (error) => reject(disconnectedError(error)));
      stdin.on('data', (chunk: Buffer) => {
        const escape = chunk.indexOf(ESCAPE);
        if (escape !== 0) writeSome(stream, stdin, escape < 0 ? chunk : chunk.subarray(0, escape));
        if (escape >= 0) resolve();
      });
      stdin.once('end', resolve);
      stdin.resume();
    });
  } finally {
    if (raw) stdin.setRawMode?.(false);
    stdin.pause();
    stream.on('error', () => {});
    stream.destroy();
  }
}

function writeSome(stream: WebSocketStream, stdin: Terminal['stdin'], chunk: Buffer): void {
  if (stream.write(chunk)) return;
  stdin.pause();
  stream.once('drain', () => stdin.resume());
}

/** Returns the reason given by the server, or KubeVirt's list of possible causes if there is none. */
function disconnectedError(cause: Error): CommandError {
  const isSilent = cause instanceof WebSocketError && cause.code === CLOSE_CODES.abnormal;
  return new CommandError(isSilent ? DISCONNECTED : `You were disconnected from the console: ${errorMessage(cause)}`, {
    cause,
  });
}

const DISCONNECTED = [
  'You were disconnected from the console. This could be caused by one of the following:',
  ' - the target VM was powered off',
  ' - another user connected to the console of the target VM',
  ' - network issues',
].join('\n');
