/** What the last word of a call can become, from the tables of commands and flags. Pure; names are looked up by others. */
import { isCommand, type CommandEntry } from '#cli/command.ts';
import type { Completes, FlagTable } from '#cli/flags.ts';

export interface CompletionFlag {
  readonly name: string;
  readonly short?: string;
  /** '' = a switch. */
  readonly value: string;
  readonly help: string;
  readonly hidden?: boolean;
  readonly completes?: Completes;
}

/** A command, or a program. */
export interface CompletionNode {
  readonly name: string;
  readonly summary: string;
  readonly hidden?: boolean;
  readonly flags: readonly CompletionFlag[];
  readonly commands: readonly CompletionNode[];
  /** Of its arguments, one after the other. */
  readonly completes: readonly Completes[];
}

export interface Candidate {
  readonly word: string;
  readonly help: string;
}

export type Kind = Exclude<Completes, readonly string[] | 'file'>;

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** Files of the user may stand here, too. */
  readonly files: boolean;
  /** Names that the server knows: which of them, and what each begins with in the shell. */
  readonly live?: { readonly kind: Kind; readonly prefix: string };
}

const NOTHING: Completion = { candidates: [], files: false };

/** `shared` flags may stand with every command. */
export function commandTree(
  name: string,
  entries: readonly CommandEntry[],
  shared: FlagTable,
  completes: readonly Completes[] = [],
): CompletionNode {
  const node = (entry: CommandEntry): CompletionNode => ({
    name: entry.name,
    summary: entry.summary,
    hidden: isCommand(entry) && entry.hidden === true,
    flags: isCommand(entry) ? Object.values(entry.flags) : [],
    commands: (entry.commands ?? []).map(node),
    completes: isCommand(entry) ? (entry.completes ?? argumentsOf(entry.usage)) : [],
  });
  return { name, summary: '', flags: Object.values(shared), commands: entries.map(node), completes };
}

/** `(VM)`, `VMI`, `FILE`: what a usage calls its arguments says what they are. */
function argumentsOf(usage: string): readonly Completes[] {
  const words = usage.split(' ').map((word) => ARGUMENTS.get(word.replaceAll(/[^A-Z]/g, '')));
  return words.flatMap((known) => (known === undefined ? [] : [known]));
}

const ARGUMENTS: ReadonlyMap<string, Completes> = new Map([
  ['VM', 'vm'],
  ['VMI', 'vmi'],
  ['FILE', 'file'],
]);

/** `words` follow the name of the program; the last is the one to complete, and may be empty. */
export function completeWords(program: CompletionNode, words: readonly string[]): Completion {
  const last = words.at(-1) ?? '';
  let node = program;
  let args = 0;
  let flag: CompletionFlag | undefined;
  for (const word of words.slice(0, -1)) {
    if (flag !== undefined) flag = undefined;
    else if (word === '--') return NOTHING;
    else if (word.startsWith('-')) flag = flagBefore(program, node, word);
    else {
      const next = args === 0 ? nextNode(program, node, word) : undefined;
      if (next === undefined) args++;
      else node = next;
    }
  }
  if (flag !== undefined) return valuesOf(flag.completes, last, '');
  if (last.startsWith('-')) return flagsFor(program, node, last);
  const names = args > 0 ? [] : node.commands.filter(({ hidden }) => hidden !== true);
  const commands = names.map(({ name, summary }) => ({ word: name, help: summary }));
  const values = valuesOf(node.completes[args], last, '');
  return { ...values, candidates: [...begun(commands, last), ...values.candidates] };
}

/** `help` is followed by the words of a command. */
function nextNode(program: CompletionNode, node: CompletionNode, word: string): CompletionNode | undefined {
  return node === program && word === 'help' ? program : node.commands.find(({ name }) => name === word);
}

/** The flag whose value comes next; undefined where none does. */
function flagBefore(program: CompletionNode, node: CompletionNode, word: string): CompletionFlag | undefined {
  return flagsOf(program, node).find(
    ({ name, short, value }) => value !== '' && (word === `--${name}` || (short !== undefined && word === `-${short}`)),
  );
}

const flagsOf = (program: CompletionNode, node: CompletionNode) =>
  node === program ? program.flags : [...node.flags, ...program.flags];

function flagsFor(program: CompletionNode, node: CompletionNode, last: string): Completion {
  const equals = last.indexOf('=');
  if (equals >= 0) {
    const flag = flagsOf(program, node).find(({ name }) => last.startsWith(`--${name}=`));
    return valuesOf(flag?.completes, last.slice(equals + 1), last.slice(0, equals + 1));
  }
  const shown = flagsOf(program, node).filter(({ hidden }) => hidden !== true);
  const names = shown.map(({ name, help }) => ({ word: `--${name}`, help: help.split('\n')[0] ?? '' }));
  return { ...NOTHING, candidates: begun(names, last) };
}

function valuesOf(completes: Completes | undefined, last: string, prefix: string): Completion {
  if (completes === undefined) return NOTHING;
  if (completes === 'file') return { ...NOTHING, files: true };
  if (typeof completes === 'string') return { ...NOTHING, live: { kind: completes, prefix } };
  const words = begun(
    completes.map((word) => ({ word, help: '' })),
    last,
  );
  return { ...NOTHING, candidates: words.map(({ word, help }) => ({ word: prefix + word, help })) };
}

const begun = (candidates: readonly Candidate[], last: string) =>
  candidates.filter(({ word }) => word.startsWith(last));

/** As cobra has it, so that kubectl reads it, too: 0 = files may stand here, 4 = none. */
export function completionLines({ candidates, files }: Completion): string {
  const lines = candidates.map(({ word, help }) => (help === '' ? word : `${word}\t${help}`));
  return [...lines, files ? ':0' : ':4', ''].join('\n');
}
