/**
 * Parses arguments like pflag, with its error messages: `--name value`, `--name=value`, `-n value`, `-nvalue`, `-n=value`,
 * switches in groups (`-abc`), `--switch=false`, and `--` before arguments that begin with a dash. Pure.
 */
import { CommandError, UsageError } from '#lib/command-line/command-error.ts';
import { FlagValueError, type Flag, type FlagTable, type FlagValues } from '#lib/command-line/flag.ts';
import { suggestion } from '#lib/text/nearest.ts';

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

export interface ParsedArgs<Table extends FlagTable> {
  readonly flags: FlagValues<Table>;
  readonly args: readonly string[];
  /** Required flags that are missing, by name. */
  readonly missing: readonly string[];
}

interface ParseOptions {
  /** Sets flags with a variable that are not among the arguments. */
  readonly env?: EnvironmentVariables;
  /** False: the first argument ends the flags, and all words after it are arguments. */
  readonly interspersed?: boolean;
}

/** Parses flags and arguments. The last occurrence of a flag wins, except for lists. Throws UsageError. */
export function parseArgs<Table extends FlagTable>(
  table: Table,
  argv: readonly string[],
  { env = {}, interspersed = true }: ParseOptions = {},
): ParsedArgs<Table> {
  const given = new GivenFlags(table);
  const args: string[] = [];
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') args.push(...rest.splice(0));
    else if (word.startsWith('--')) given.takeLong(word, rest);
    else if (word.startsWith('-') && word !== '-') given.takeShort(word, rest);
    else args.push(word, ...(interspersed ? [] : rest.splice(0)));
  }
  return { args, ...given.finish(env) };
}

class GivenFlags<Table extends FlagTable> {
  readonly #table: Table;
  readonly #values = new Map<string, unknown>();

  constructor(table: Table) {
    this.#table = table;
  }

  /** `--name`, `--name=value`, or `--name value`, whose value is the first of the following words. */
  takeLong(word: string, rest: string[]): void {
    const equals = word.indexOf('=');
    const name = word.slice(2, equals < 0 ? undefined : equals);
    if (name === '' || name.startsWith('-')) throw new UsageError(`bad flag syntax: ${word}`);
    const [key, flag] = this.#find((one) => one.name === name) ?? [];
    if (key === undefined || flag === undefined) {
      const known = Object.values(this.#table).flatMap((one) => (one.hidden === true ? [] : [one.name]));
      throw new UsageError(`unknown flag: --${name}${suggestion(name, known, (near) => `--${near}`)}`);
    }
    const inline = equals < 0 ? undefined : word.slice(equals + 1);
    const text = inline ?? (flag.value === '' ? 'true' : rest.shift());
    if (text === undefined) throw new UsageError(`flag needs an argument: --${name}`);
    this.#set(key, flag, text);
  }

  /** `-c`, `-cn value`, `-nvalue`, `-n=value`. */
  takeShort(word: string, rest: string[]): void {
    for (let letters = word.slice(1); letters !== '';) {
      const letter = letters[0]!;
      letters = letters.slice(1);
      const [key, flag] = this.#find((one) => one.short === letter) ?? [];
      if (key === undefined || flag === undefined) {
        throw new UsageError(`unknown shorthand flag: ${quoteLetter(letter)} in ${word}`);
      }
      let text: string | undefined;
      if (letters.startsWith('=')) [text, letters] = [letters.slice(1), ''];
      else if (flag.value === '') text = 'true';
      else if (letters === '') text = rest.shift();
      else [text, letters] = [letters, ''];
      if (text === undefined) throw new UsageError(`flag needs an argument: ${quoteLetter(letter)} in ${word}`);
      this.#set(key, flag, text);
    }
  }

  /** Returns all values. Variables are read only for flags that are not given. */
  finish(env: EnvironmentVariables): { flags: FlagValues<Table>; missing: string[] } {
    const missing: string[] = [];
    const flags = Object.entries(this.#table).map(([key, flag]) => {
      const { variable } = flag;
      const text = variable === undefined || this.#values.has(key) ? undefined : env[variable];
      if (text !== undefined) this.#values.set(key, parseValue(flag, text, `variable ${variable}`));
      const value = this.#values.has(key) ? this.#values.get(key) : flag.fallback;
      if (flag.required === true && value === '') missing.push(flag.name);
      return [key, value];
    });
    return { flags: Object.fromEntries(flags) as FlagValues<Table>, missing };
  }

  #set(key: string, flag: Flag<unknown>, text: string): void {
    const shown = flag.short === undefined ? `--${flag.name}` : `-${flag.short}, --${flag.name}`;
    this.#values.set(key, parseValue(flag, text, `${JSON.stringify(shown)} flag`, this.#values.get(key)));
  }

  #find(matches: (flag: Flag<unknown>) => boolean): readonly [string, Flag<unknown>] | undefined {
    return Object.entries(this.#table).find(([, flag]) => matches(flag));
  }
}

const quoteLetter = (letter: string) => `'${letter}'`;

function parseValue(flag: Flag<unknown>, text: string, source: string, before?: unknown): unknown {
  try {
    return flag.parse(text, before);
  } catch (cause) {
    if (cause instanceof CommandError || !(cause instanceof FlagValueError)) throw cause;
    throw new UsageError(`invalid argument ${JSON.stringify(text)} for ${source}: ${cause.message}`, { cause });
  }
}

/** Reports whether a word of a command line, before `--`, asks for help. */
export function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).some((word) => word === '--help' || word === '-h');
}
