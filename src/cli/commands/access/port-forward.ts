/** virtctl port-forward */
import { forwardTcp, type Forwarding } from '#cli/commands/access/forward-tcp.ts';
import { forwardUdp } from '#cli/commands/access/forward-udp.ts';
import { resolveGuest, openGuestPort } from '#cli/commands/access/guest-port.ts';
import { joinStreams } from '#cli/commands/access/join-streams.ts';
import { parsePort, type ForwardedPort } from '#cli/commands/access/ports.ts';
import { parseTarget } from '#cli/commands/access/target.ts';
import { defineCommand } from '#cli/command.ts';
import { explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import { switchFlag, textFlag } from '#lib/command-line/flag.ts';

const MAX_PORTS = 64;

export const portForward = defineCommand({
  name: 'port-forward',
  usage: 'name|(vm|vmi)/name[/namespace] [protocol/]localPort[:targetPort]...',
  summary: 'Forward local ports to a virtualmachine or virtualmachineinstance.',
  details: [
    'The type is one of vm, vmi, virtualmachine and virtualmachineinstance, or a plural of these; vm by default. A target',
    'type/name.namespace means type/name/namespace. The protocol is tcp (default) or udp; localPort 0 picks a free port.',
    '',
    'Connections go through the API server and require access to the subresource portforward. They end when the guest is',
    'migrated; new connections reach it on its new node.',
  ].join('\n'),
  example: [
    '  # Forward the local port 8080 to the vmi port:',
    '  virtctl port-forward vmi/testvmi 8080',
    '',
    '  # Forward the local port 8080 to the vmi port 9090:',
    '  virtctl port-forward vmi/testvmi 8080:9090',
    '',
    '  # Forward the local port 8080 to the vmi port 9090 as a UDP connection:',
    '  virtctl port-forward vmi/testvmi/mynamespace udp/8080:9090',
    '',
    '  # Connect standard input and output to the vm port 22:',
    '  virtctl port-forward --stdio vm/testvm 22',
  ].join('\n'),
  flags: {
    stdio: switchFlag({
      name: 'stdio',
      help: 'Forward the tunnel to stdout/stdin; only works with a single port',
    }),
    address: textFlag(
      { name: 'address', help: 'The address to open the local ports on; 127.0.0.1 by default' },
      'string',
    ),
  },
  args: [2, 1 + MAX_PORTS],
  async run({ args: [target = '', ...words], flags, connect, print, report, terminal, clock, untilInterrupted }) {
    const named = parseTarget(target);
    const ports = words.map(parsePort);
    const address = flags.address ?? '127.0.0.1';
    const [first] = ports;
    if (flags.stdio && (ports.length !== 1 || first === undefined)) {
      throw new UsageError('only one port supported when forwarding to stdout');
    }
    const api = await connect();
    const guest = resolveGuest(api, named);
    const problem = `Cannot reach ${guest.kind}/${guest.name}/${guest.namespace}: `;
    const openPort = (port: ForwardedPort) => explainFailure(problem, openGuestPort(api, guest, port));
    if (flags.stdio && first !== undefined) {
      const stream = await openPort(first);
      return await joinStreams({ input: terminal.stdin, output: terminal.stdout }, stream);
    }
    const open: Forwarding[] = [];
    try {
      for (const port of ports) {
        const options = { address, port, open: () => openPort(port), report };
        const forwarding =
          port.protocol === 'udp' ? await forwardUdp({ ...options, clock }) : await forwardTcp(options);
        open.push(forwarding);
        print(`forwarding ${port.protocol} ${address}:${forwarding.port} to ${port.remote}`);
      }
      await untilInterrupted();
    } finally {
      for (const forwarding of open) forwarding.close();
    }
  },
});
