/** Creates guestosinfo, userlist and fslist, which print one response of the guest agent. */
import type { GuestRead } from '#api/guest-info.ts';
import { defineCommand, type Command } from '#cli/parsing/command.ts';
import { CommandError } from '#cli/parsing/flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';

interface GuestReadOptions {
  readonly name: string;
  readonly read: GuestRead;
  readonly summary: string;
  /** `Error <doing> of VirtualMachineInstance`. */
  readonly doing: string;
}

export function guestReadCommand({ name, read, summary, doing }: GuestReadOptions): Command {
  return defineCommand({
    name,
    usage: '(VMI)',
    summary,
    example: `  # ${summary.slice(0, -1)}, of 'myvmi':\n  virtctl ${name} myvmi`,
    flags: {},
    args: 1,
    async run({ args: [target = ''], connect, print }) {
      const api = await connect();
      let response: unknown;
      try {
        response = await api.get(verbPath('virtualmachineinstances', api.namespace, target, read));
      } catch (cause) {
        throw new CommandError(`Error ${doing} of VirtualMachineInstance ${target}: ${errorMessage(cause)}`, { cause });
      }
      print(JSON.stringify(response, undefined, 2));
    },
  });
}
