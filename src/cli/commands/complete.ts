/** virtctl __complete: called by the completion scripts of shells. */
import { accessFlags } from '#cli/connection/cluster-access.ts';
import { defineCommand, type Command, type CommandContext, type CommandEntry } from '#cli/parsing/command.ts';
import { commandTree, completeWords, completionLines, type Completion } from '#cli/completion/complete-words.ts';
import { listLiveNames } from '#cli/completion/live-names.ts';
import { parseArgs, type FlagTable } from '#cli/parsing/flags.ts';
import { raceSignal } from '#lib/race-signal.ts';

/** Short, because a user waits for the completion. */
const LOOKUP_MS = 2000;

/** Creates the command. `entries` returns all commands, including this one. */
export function completeCommand(entries: () => readonly CommandEntry[], shared: FlagTable): Command {
  return defineCommand({
    name: '__complete',
    usage: 'WORD ...',
    summary: 'Print the completions of the last word, for the scripts of virtctl completion.',
    example: "  # Print the completions of 'virtctl st':\n  virtctl __complete st",
    flags: {},
    args: [0, Infinity],
    hidden: true,
    takesAll: true,
    async run(context) {
      const { args, terminal } = context;
      const found = completeWords(commandTree('virtctl', entries(), shared), args);
      const names = found.live === undefined ? [] : await lookUpNames(context, found.live);
      terminal.stdout.write(completionLines({ ...found, candidates: [...found.candidates, ...names] }));
    },
  });
}

/** Returns no names if the server is slow or refuses: a shell shows no errors. */
async function lookUpNames({ args, connect, clock }: CommandContext<object>, live: NonNullable<Completion['live']>) {
  const late = new AbortController();
  const stopTimer = clock.after(LOOKUP_MS, () => late.abort(new Error('too late')));
  try {
    const api = await connect(parseAccessFlags(args));
    return await raceSignal(listLiveNames(api, live, args.at(-1) ?? ''), late.signal);
  } catch {
    return [];
  } finally {
    stopTimer();
  }
}

/** Reads the access flags from the words before the one to complete. */
function parseAccessFlags(words: readonly string[]) {
  const given: string[] = [];
  const flags = Object.values(accessFlags);
  const typed = words.slice(0, -1);
  for (const [i, word] of typed.entries()) {
    const next = typed[i + 1];
    const isFlag = flags.some(({ name, short = '' }) => word === `--${name}` || word === `-${short}`);
    if (isFlag && next !== undefined) given.push(word, next);
    else if (flags.some(({ name }) => word.startsWith(`--${name}=`))) given.push(word);
  }
  return parseArgs(accessFlags, given).flags;
}
