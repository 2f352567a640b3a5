/** virtctl completion, and __complete, which the completion scripts of shells call. */
import { completionExample, completionScript, SHELLS } from '#lib/command-line/completion-script.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { accessFlags } from '#cli/connection/cluster-access.ts';
import { defineCommand, type VirtctlCommand, type CommandContext, type VirtctlContext } from '#cli/command.ts';
import { commandTree, completeWords, completionLines, type Completion } from '#lib/command-line/complete-words.ts';
import { LIVE_KINDS, listLiveNames } from '#cli/commands/completion/live-names.ts';
import { parseArgs } from '#lib/command-line/parse-args.ts';
import { raceSignal } from '#lib/race-signal.ts';

export const completion = defineCommand({
  name: 'completion',
  usage: SHELLS.join('|'),
  summary: 'Print a shell completion script for virtctl.',
  details:
    'Completes commands, flags, flag values, and object names, which it reads from the server.\n' +
    'For "kubectl virt", load the completion of kubectl, which calls the program kubectl_complete-virt.',
  example: completionExample('virtctl'),
  flags: {},
  args: 1,
  completes: [SHELLS],
  async run({ args: [word], terminal }) {
    const shell = SHELLS.find((one) => one === word);
    if (shell === undefined) {
      throw new UsageError(`unsupported shell type ${JSON.stringify(word)}; expected ${SHELLS.join(', ')}`);
    }
    terminal.stdout.write(completionScript(shell, 'virtctl'));
  },
});

/** Short, because a user waits for the completion. */
const LOOKUP_MS = 2000;

type CompletedProgram = Parameters<typeof commandTree<VirtctlContext>>[0];

/** Creates the command. `program` returns all commands, including this one. */
export function completeCommand(program: () => CompletedProgram): VirtctlCommand {
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
      const found = completeWords(commandTree(program(), LIVE_KINDS.keys()), args);
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
