/** virtctl ssh: runs the local ssh client through the API. */
import { resolveGuest } from '#cli/commands/access/guest-port.ts';
import { sshHostName, buildProxyArguments, sshFlags } from '#cli/commands/access/ssh-arguments.ts';
import { parseUserTarget } from '#cli/commands/access/target.ts';
import { defineCommand } from '#cli/command.ts';
import { textFlag } from '#lib/command-line/flag.ts';
import { requireProgram } from '#cli/programs.ts';

export const ssh = defineCommand({
  name: 'ssh',
  usage: '[user@]name|(vm|vmi)/name[/namespace]',
  summary: 'Open a SSH connection to a virtual machine instance.',
  details:
    'Runs the local ssh client, which reaches the guest through `virtctl port-forward --stdio`. A name without a type is a\n' +
    'virtual machine.',
  example: [
    "  # Connect to the virtual machine 'testvm', or to the instance 'testvmi':",
    '  virtctl ssh jdoe@testvm',
    '  virtctl ssh jdoe@vmi/testvmi',
    '',
    "  # Connect to 'testvm' in 'mynamespace' namespace, with a key:",
    '  virtctl ssh -i ~/.ssh/id_ed25519 jdoe@vm/testvm/mynamespace',
    '',
    '  # Run a command:',
    "  virtctl ssh jdoe@vmi/testvmi -c 'uname -r'",
  ].join('\n'),
  flags: {
    ...sshFlags,
    command: textFlag(
      { name: 'command', short: 'c', help: "--command='ls /': A command to execute in the VM" },
      'string',
    ),
  },
  args: 1,
  async run({ args: [target = ''], flags, connect, programs, accessArguments, user }) {
    const named = parseUserTarget(target);
    const guest = resolveGuest(await connect(), named);
    const client = await requireProgram(programs, 'ssh');
    return await programs.run(client, [
      ...buildProxyArguments([...programs.self, ...accessArguments], guest, flags),
      // Keeps ssh from reading the following arguments as options.
      '--',
      sshHostName(guest, named.username ?? flags.username ?? user),
      ...(flags.command === undefined || flags.command === '' ? [] : [flags.command]),
    ]);
  },
});
