/** virtctl version */
import { defineCommand } from '#cli/command.ts';
import { switchFlag } from '#cli/flags.ts';
import { clientVersion, serverVersion, shownVersion } from '#cli/server-version.ts';

export const version = defineCommand({
  name: 'version',
  usage: '',
  summary: 'Print the client and server version information.',
  example: '  # Print the client and server versions for the current context:\n  virtctl version',
  flags: { client: switchFlag({ name: 'client', short: 'c', help: 'Client version only (no server required).' }) },
  args: 0,
  async run({ flags, connect, print }) {
    print(`Client Version: ${shownVersion(clientVersion())}`);
    if (!flags.client) print(`Server Version: ${shownVersion(await serverVersion(await connect()))}`);
  },
});
