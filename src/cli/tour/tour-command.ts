/** Runs virtctl commands for the tour: in its namespace, over its connection, without output. */
import { PassThrough } from 'node:stream';
import type { Command, CommandContext } from '#cli/parsing/command.ts';
import { parseArgs } from '#cli/parsing/flags.ts';
import type { TourApi } from '#cli/tour/tour-api.ts';

/** Runs a command with these words, as a user would type them. Rejects with the error that virtctl would show. */
export async function runVirtctlCommand(api: TourApi, command: Command, words: readonly string[]): Promise<void> {
  const { connection, namespace, clock } = api;
  const { flags, args } = parseArgs(command.flags, words);
  const discarded = new PassThrough().resume();
  const context: CommandContext<unknown> = {
    args,
    flags,
    connect: async () => ({ ...connection, namespace }),
    namespace,
    print: () => {},
    terminal: { stdin: new PassThrough(), stdout: discarded, stderr: discarded },
    clock,
    programs: { self: [], platform: process.platform, find: async () => undefined, run: async () => 1 },
    accessArguments: [],
    user: undefined,
    untilInterrupted: () => new Promise(() => {}),
  };
  await command.run(context as CommandContext<never>);
}
