/** virtctl version */
import { defineCommand } from '#cli/command.ts';
import { switchFlag } from '#lib/command-line/flag.ts';
import { formatValue, outputFlag } from '#cli/output-format.ts';
import { clientVersion, readServerVersion, renderVersion } from '#cli/connection/server-version.ts';

export const version = defineCommand({
  name: 'version',
  usage: '',
  summary: 'Print the client and server version information.',
  example: [
    '  # Print the client and server versions for the current context:',
    '  virtctl version',
    '',
    '  # Print only the client version, as JSON:',
    '  virtctl version --client -o json',
  ].join('\n'),
  flags: {
    client: switchFlag({ name: 'client', short: 'c', help: 'Client version only (no server required).' }),
    output: outputFlag,
  },
  args: 0,
  async run({ flags, connect, print }) {
    const format = flags.output;
    if (format !== undefined) {
      const server = flags.client ? {} : { serverVersion: await readServerVersion(await connect()) };
      print(formatValue({ clientVersion: clientVersion(), ...server }, format));
      return;
    }
    print(`Client Version: ${renderVersion(clientVersion())}`);
    if (!flags.client) print(`Server Version: ${renderVersion(await readServerVersion(await connect()))}`);
  },
});
