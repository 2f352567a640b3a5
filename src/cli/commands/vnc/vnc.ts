/** virtctl vnc: opens a local port for the display of a guest and starts a viewer. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { socketStreams, joinStreams } from '#cli/commands/access/join-streams.ts';
import { parseInstanceTarget } from '#cli/commands/access/target.ts';
import { findViewer, VIEWER_TYPES, type Viewer } from '#cli/commands/vnc/viewer.ts';
import { PLAIN_STREAM_PROTOCOL } from '#api/names.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { defineCommand, type CommandContext } from '#cli/command.ts';
import { vncScreenshot } from '#cli/commands/vnc/screenshot.ts';
import { CommandError, explainFailure } from '#lib/command-line/command-error.ts';
import { integerFlag, switchFlag, textFlag } from '#lib/command-line/flag.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { Programs } from '#cli/programs.ts';
import { vmPath, verbPath } from '#cli/connection/verb-path.ts';
import { isTrue, type Condition } from '#kube/conditions.ts';
import { isRecord } from '#kube/meta.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

const LOCAL = '127.0.0.1';
/** The time within which a started viewer must connect. */
const CONNECT_MS = 60_000;

export const vnc = {
  ...defineCommand({
    name: 'vnc',
    usage: '(VMI)',
    summary: 'Open a vnc connection to a virtual machine instance.',
    example: [
      "  # Connect to 'testvmi' via remote-viewer, or vncviewer:",
      '  virtctl vnc testvmi',
      '',
      '  # Only open a port that any viewer can connect to:',
      '  virtctl vnc testvmi --proxy-only --port 5901',
      '',
      '  # Take a screenshot:',
      '  virtctl vnc screenshot testvmi -f screenshot.png',
    ].join('\n'),
    flags: {
      address: textFlag(
        {
          name: 'address',
          help: `The address for --proxy-only to listen on; ${LOCAL} by default, 0.0.0.0 for all interfaces`,
        },
        'string',
      ),
      proxyOnly: switchFlag({
        name: 'proxy-only',
        help: 'Run only the proxy and show the port where VNC viewers can connect',
      }),
      preserveSession: switchFlag({
        name: 'preserve-session',
        help: 'Connect only if no other VNC session is open, instead of sharing the display',
      }),
      port: integerFlag({ name: 'port', help: 'The port of the proxy; a free port by default' }, 0),
      vncType: textFlag({ name: 'vnc-type', help: `The VNC viewer to use: ${VIEWER_TYPES.join(', ')}` }, 'string'),
      vncPath: textFlag(
        { name: 'vnc-path', help: 'The path to the VNC viewer; looked up in $PATH by default' },
        'string',
      ),
    },
    args: 1,
    async run(context) {
      const { args, flags, connect, print } = context;
      const target = parseInstanceTarget(args[0] ?? '');
      const viewer = flags.proxyOnly
        ? undefined
        : await findViewer({ type: flags.vncType, path: flags.vncPath }, context.programs);
      const api = await connect();
      const guest = { name: target.name, namespace: target.namespace ?? api.namespace };
      const display = await openDisplay(api, guest, flags.preserveSession);
      const address = flags.proxyOnly ? (flags.address ?? LOCAL) : LOCAL;
      const server = await listen(address, flags.port, () => display.destroy());
      const { port } = server.address() as AddressInfo;
      const ending = new AbortController();
      try {
        const served = serveOne(server, display, () => warnOfPause(api, guest, context));
        if (viewer === undefined) {
          print(JSON.stringify({ port }));
          await Promise.race([served, context.untilInterrupted()]);
          return;
        }
        const stopTimer = context.clock.after(CONNECT_MS, () => server.close());
        const watched = runViewer(context.programs, viewer, port, ending);
        await Promise.race([served, watched, context.untilInterrupted()]).finally(stopTimer);
      } finally {
        ending.abort();
        server.close();
        display.on('error', () => {});
        display.destroy();
      }
    },
  }),
  commands: [vncScreenshot],
};

interface NamedInstance {
  readonly name: string;
  readonly namespace: string;
}

async function runViewer(
  programs: Programs,
  { program, args }: Viewer,
  port: number,
  ending: { readonly signal: AbortSignal },
): Promise<void> {
  const code = await programs.run(program, args(port), ending);
  if (code !== 0) throw new CommandError(`Cannot show the display: ${program} ended with exit status ${code}`);
}

async function openDisplay(
  api: ApiConnection,
  { name, namespace }: NamedInstance,
  preserve: boolean,
): Promise<WebSocketStream> {
  const path = `${verbPath('virtualmachineinstances', namespace, name, 'vnc')}?preserveSession=${preserve}`;
  return await explainFailure(
    `Cannot open the display of VMI ${name}: `,
    api.openWebSocket(path, [PLAIN_STREAM_PROTOCOL]),
  );
}

async function listen(address: string, port: number, failed: () => void): Promise<Server> {
  const server = createServer({ pauseOnConnect: true });
  // A second viewer would join in the middle of the protocol of the first.
  server.maxConnections = 1;
  server.listen(port, address);
  try {
    await once(server, 'listening');
    return server;
  } catch (cause) {
    failed();
    throw new CommandError(`Cannot listen on ${address}:${port}: ${errorMessage(cause)}`, { cause });
  }
}

/** Serves the first viewer until it disconnects or the display closes. */
async function serveOne(server: Server, display: WebSocketStream, connected: () => Promise<void>): Promise<void> {
  const closed = new Promise<never>((_, reject) => {
    display.once('error', (cause) => reject(new CommandError(`The display was closed: ${cause.message}`, { cause })));
    display.once('close', () => reject(new CommandError('The display was closed')));
  });
  const socket = await Promise.race([acceptViewer(server), closed]);
  await connected();
  const disconnected = once(socket, 'close');
  try {
    await Promise.race([joinStreams(socketStreams(socket), display), disconnected, closed]);
  } catch (error) {
    // A viewer that disconnects is not an error; a display that closes is.
    if (!socket.destroyed) throw error;
  } finally {
    socket.destroy();
  }
}

async function acceptViewer(server: Server): Promise<Socket> {
  const [socket] = (await Promise.race([
    once(server, 'connection'),
    once(server, 'close').then(() => {
      throw new CommandError(`Cannot show the display: no viewer connected within ${CONNECT_MS / 1000} seconds`);
    }),
  ])) as [Socket];
  socket.on('error', () => {});
  return socket;
}

async function warnOfPause(
  api: ApiConnection,
  { name, namespace }: NamedInstance,
  { report }: Pick<CommandContext<unknown>, 'report'>,
): Promise<void> {
  const vmi = await api.get(vmPath('virtualmachineinstances', namespace, name)).catch(() => undefined);
  const status = isRecord(vmi) && isRecord(vmi['status']) ? vmi['status'] : {};
  const conditions = Array.isArray(status['conditions']) ? (status['conditions'] as Condition[]) : [];
  if (!isTrue(conditions, 'Paused')) return;
  report(`Warning: ${name} is paused. Console will be active after unpause.`);
}
