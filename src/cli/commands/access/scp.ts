/** virtctl scp: runs the local scp through the API. */
import { resolveGuest } from '#cli/commands/access/guest-port.ts';
import { parseCopy } from '#cli/commands/access/scp-locations.ts';
import { sshHostName, buildProxyArguments, sshFlags } from '#cli/commands/access/ssh-arguments.ts';
import { defineCommand } from '#cli/command.ts';
import { switchFlag } from '#lib/command-line/flag.ts';
import { requireProgram } from '#cli/programs.ts';

export const scp = defineCommand({
  name: 'scp',
  usage: 'SOURCE DESTINATION',
  summary: 'SCP files from/to a virtual machine instance.',
  details:
    'One location is [user@]name:path or [user@](vm|vmi)/name[/namespace]:path, the other a local path. A name without a\n' +
    'type is a virtual machine.',
  example: [
    '  # Copy a file to the remote home folder of user jdoe',
    '  virtctl scp myfile.bin jdoe@vmi/testvmi:myfile.bin',
    '',
    '  # Copy a directory to the remote home folder of user jdoe',
    '  virtctl scp --recursive ~/mydir/ jdoe@vmi/testvmi:./mydir',
    '',
    '  # Copy a file from the remote location to a local folder',
    '  virtctl scp jdoe@vmi/testvmi/mynamespace:myfile.bin ~/myfile.bin',
  ].join('\n'),
  flags: {
    ...sshFlags,
    recursive: switchFlag({ name: 'recursive', short: 'r', help: 'Recursively copy entire directories' }),
    preserve: switchFlag({
      name: 'preserve',
      help: 'Preserves modification times, access times, and modes from the original file.',
    }),
  },
  args: 2,
  async run({ args: [source = '', destination = ''], flags, connect, programs, accessArguments, user }) {
    const { target, remotePath, localPath, toRemote } = parseCopy(source, destination);
    const guest = resolveGuest(await connect(), target);
    const client = await requireProgram(programs, 'scp');
    const remote = `${sshHostName(guest, target.username ?? flags.username ?? user)}:${remotePath}`;
    return await programs.run(client, [
      ...buildProxyArguments([...programs.self, ...accessArguments], guest, flags),
      ...(flags.recursive ? ['-r'] : []),
      ...(flags.preserve ? ['-p'] : []),
      // Keeps ssh from reading the following arguments as options.
      '--',
      ...(toRemote ? [localPath, remote] : [remote, localPath]),
    ]);
  },
});
