/** Runs virtctl commands for the tour: in its namespace, over its connection, with the output as text. */
import { PassThrough } from 'node:stream';
import type { Command, CommandContext } from '#cli/parsing/command.ts';
import { parseArgs } from '#cli/parsing/flags.ts';
import type { TourApi } from '#cli/tour/tour-api.ts';

/** Runs a command with these words, as a user would type them, and returns the lines that it printed to stdout. */
export async function runVirtctlCommand(api: TourApi, command: Command, words: readonly string[]): Promise<string[]> {
  const { connection, namespace, clock } = api;
  const { flags, args } = parseArgs(command.flags, words);
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  stderr.resume();
  const chunks: Buffer[] = [];
  stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const context: CommandContext<unknown> = {
    args,
    flags,
    connect: async () => ({ ...connection, namespace }),
    namespace,
    print: (line) => void stdout.write(`${line}\n`),
    terminal: { stdin: new PassThrough(), stdout, stderr },
    clock,
    programs: { self: [], platform: process.platform, find: async () => undefined, run: async () => 1 },
    accessArguments: [],
    user: undefined,
    untilInterrupted: () => new Promise(() => {}),
  };
  await command.run(context as CommandContext<never>);
  return Buffer.concat(chunks)
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '');
}
