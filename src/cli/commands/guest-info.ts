/** guestosinfo, userlist and fslist: each prints one response of the guest agent. */
import type { GuestRead } from '#api/guest-info.ts';
import { defineCommand, type VirtctlCommand } from '#cli/command.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { jsonText } from '#cli/output-format.ts';
import { explainFailure } from '#lib/command-line/command-error.ts';

interface GuestReadOptions {
  readonly name: string;
  readonly read: GuestRead;
  readonly summary: string;
  /** Used in `Cannot <task> of VMI`. */
  readonly task: string;
}

function defineGuestRead({ name, read, summary, task }: GuestReadOptions): VirtctlCommand {
  return defineCommand({
    name,
    usage: '(VMI)',
    summary,
    example: `  # ${summary.slice(0, -1)}, of 'myvmi':\n  virtctl ${name} myvmi`,
    flags: {},
    args: 1,
    async run({ args: [target = ''], connect, print }) {
      const api = await connect();
      const path = verbPath('virtualmachineinstances', api.namespace, target, read);
      const response = await explainFailure(`Cannot ${task} of VMI ${target}: `, api.get(path));
      print(jsonText(response, 2));
    },
  });
}

export const guestInfoCommands: readonly VirtctlCommand[] = [
  defineGuestRead({
    name: 'fslist',
    read: 'filesystemlist',
    summary: 'Return full list of filesystems available on the guest machine.',
    task: 'list the file systems',
  }),
  defineGuestRead({
    name: 'guestosinfo',
    read: 'guestosinfo',
    summary: 'Return guest agent info about operating system.',
    task: 'read the operating system',
  }),
  defineGuestRead({
    name: 'userlist',
    read: 'userlist',
    summary: 'Return full list of logged in users on the guest machine.',
    task: 'list the users',
  }),
];
