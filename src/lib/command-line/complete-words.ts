/** Completes the last word of a call from the tables of commands and flags. Pure; the program looks up object names. */
import { isCommand, type CommandEntry } from '#lib/command-line/command.ts';
import type { Completes, Flag, FlagTable } from '#lib/command-line/flag.ts';
import type { ProgramTable } from '#lib/command-line/resolve-call.ts';

type CompletionFlag = Flag<unknown>;

/** A command, or a program. */
interface CompletionNode {
  readonly name: string;
  readonly summary: string;
  readonly hidden?: boolean;
  readonly flags: readonly CompletionFlag[];
  readonly commands: readonly CompletionNode[];
  /** The completions of its arguments, by position. */
  readonly completes: readonly Completes[];
}

export interface CompletionCandidate {
  readonly word: string;
  readonly help: string;
}

export interface Completion {
  readonly candidates: readonly CompletionCandidate[];
  /** True if local files are also possible. */
  readonly files: boolean;
  /** Set if object names of this kind are possible. `prefix` precedes each name in the shell. */
  readonly live?: { readonly kind: string; readonly prefix: string };
}

const NO_COMPLETION: Completion = { candidates: [], files: false };

/**
 * Returns the tree of a program. `kinds` are the kinds of objects whose names it can look up. The argument names in a usage,
 * such as `(VM)` or `FILE`, are completed with objects of that kind or with files.
 */
export function commandTree<Context>(
  { name, commands, shared }: Pick<ProgramTable<Context, FlagTable>, 'name' | 'commands' | 'shared'>,
  kinds: Iterable<string> = [],
): CompletionNode {
  const known = new Set(['file', ...kinds]);
  const completesOf = (usage: string) =>
    usage
      .split(' ')
      .map((word) => word.replaceAll(/[^A-Z]/g, '').toLowerCase())
      .filter((word) => known.has(word));
  const nodeOf = (entry: CommandEntry<Context>): CompletionNode => ({
    name: entry.name,
    summary: entry.summary,
    hidden: isCommand(entry) && entry.hidden === true,
    flags: isCommand(entry) ? Object.values(entry.flags) : [],
    commands: (entry.commands ?? []).map(nodeOf),
    completes: isCommand(entry) ? (entry.completes ?? completesOf(entry.usage)) : [],
  });
  return { name, summary: '', flags: Object.values(shared), commands: commands.map(nodeOf), completes: [] };
}

/** `words` are the words after the program name. The last one is completed, and may be empty. */
export function completeWords(program: CompletionNode, words: readonly string[]): Completion {
  const last = words.at(-1) ?? '';
  let node = program;
  let args = 0;
  let flag: CompletionFlag | undefined;
  for (const word of words.slice(0, -1)) {
    if (flag !== undefined) flag = undefined;
    else if (word === '--') return NO_COMPLETION;
    else if (word.startsWith('-')) flag = flagAwaitingValue(program, node, word);
    else {
      const next = args === 0 ? nextNode(program, node, word) : undefined;
      if (next === undefined) args++;
      else node = next;
    }
  }
  if (flag !== undefined) return completeValue(flag.completes, last, '');
  if (last.startsWith('-')) return completeFlag(program, node, last);
  const names = args > 0 ? [] : node.commands.filter(({ hidden }) => hidden !== true);
  const commands = names.map(({ name, summary }) => ({ word: name, help: summary }));
  const values = completeValue(node.completes[args], last, '');
  return { ...values, candidates: [...filterByPrefix(commands, last), ...values.candidates] };
}

/** Returns the node of a word. After `help`, the words of a command follow. */
function nextNode(program: CompletionNode, node: CompletionNode, word: string): CompletionNode | undefined {
  return node === program && word === 'help' ? program : node.commands.find(({ name }) => name === word);
}

/** Returns the flag whose value is the next word, or undefined. */
function flagAwaitingValue(program: CompletionNode, node: CompletionNode, word: string): CompletionFlag | undefined {
  return flagsOf(program, node).find(
    ({ name, short, value }) => value !== '' && (word === `--${name}` || (short !== undefined && word === `-${short}`)),
  );
}

const flagsOf = (program: CompletionNode, node: CompletionNode) =>
  node === program ? program.flags : [...node.flags, ...program.flags];

function completeFlag(program: CompletionNode, node: CompletionNode, last: string): Completion {
  const equals = last.indexOf('=');
  if (equals >= 0) {
    const flag = flagsOf(program, node).find(({ name }) => last.startsWith(`--${name}=`));
    return completeValue(flag?.completes, last.slice(equals + 1), last.slice(0, equals + 1));
  }
  const shown = flagsOf(program, node).filter(({ hidden }) => hidden !== true);
  const names = shown.map(({ name, help }) => ({ word: `--${name}`, help: help.split('\n')[0] ?? '' }));
  return { ...NO_COMPLETION, candidates: filterByPrefix(names, last) };
}

function completeValue(completes: Completes | undefined, last: string, prefix: string): Completion {
  if (completes === undefined) return NO_COMPLETION;
  if (completes === 'file') return { ...NO_COMPLETION, files: true };
  if (typeof completes === 'string') return { ...NO_COMPLETION, live: { kind: completes, prefix } };
  const words = filterByPrefix(
    completes.map((word) => ({ word, help: '' })),
    last,
  );
  return { ...NO_COMPLETION, candidates: words.map(({ word, help }) => ({ word: prefix + word, help })) };
}

const filterByPrefix = (candidates: readonly CompletionCandidate[], last: string) =>
  candidates.filter(({ word }) => word.startsWith(last));

/** Renders the completions in cobra's format, which kubectl reads as well: 0 = files are possible, 4 = they are not. */
export function completionLines({ candidates, files }: Completion): string {
  const lines = candidates.map(({ word, help }) => (help === '' ? word : `${word}\t${help}`));
  return [...lines, files ? ':0' : ':4', ''].join('\n');
}
