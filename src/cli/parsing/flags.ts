/** Parses flags like cobra, with its error messages: `--name value`, `--name=value`, `-n value`, `-nvalue`. Pure. */
import { suggestion } from '#lib/nearest.ts';

export interface Flag<T> {
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** Placeholder of the value in the help; '' for a switch. */
  readonly value: string;
  readonly help: string;
  readonly fallback: T;
  /** Accepted, but omitted from the help. */
  readonly hidden?: boolean;
  /** Completions of its value. */
  readonly completes?: Completes;
  /** Parses a value. `before` is the value of an earlier occurrence. Throws CommandError. */
  parse(text: string, shown: string, before?: T): T;
}

/** Completions: object names from the server, local files, or fixed words. */
export type Completes = 'vm' | 'vmi' | 'pvc' | 'namespace' | 'file' | readonly string[];

export type FlagTable = Readonly<Record<string, Flag<unknown>>>;
export type FlagValues<Table extends FlagTable> = {
  readonly [Key in keyof Table]: Table[Key] extends Flag<infer T> ? T : never;
};

/** A failure of a command. The message is shown to the user unchanged. */
export class CommandError extends Error {
  override name = 'CommandError';
}

type FlagHeader = Pick<Flag<unknown>, 'name' | 'short' | 'help' | 'hidden' | 'completes'>;

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

export function switchFlag(named: FlagHeader): Flag<boolean> {
  return {
    ...named,
    value: '',
    fallback: false,
    parse(text, shown) {
      if (TRUE.has(text) || FALSE.has(text)) return TRUE.has(text);
      throw invalidArgument(text, shown, `strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
    },
  };
}

export function textFlag(named: FlagHeader, value: string): Flag<string | undefined> {
  return { ...named, value, fallback: undefined, parse: (text) => text };
}

/** Creates a flag that can be repeated; each occurrence adds a value. */
export function listFlag(named: FlagHeader, value: string): Flag<readonly string[]> {
  return { ...named, value, fallback: [], parse: (text, _, before = []) => [...before, text] };
}

/** Creates a flag `a=b,c=d` that can be repeated; the last value of a key wins. Undefined if not given. */
export function pairsFlag(named: FlagHeader, value: string): Flag<Readonly<Record<string, string>> | undefined> {
  return {
    ...named,
    value,
    fallback: undefined,
    parse(text, shown, before) {
      const pairs = text.split(',').map((pair): [string, string] => {
        const equals = pair.indexOf('=');
        if (equals < 0) throw invalidArgument(text, shown, `${pair} must be formatted as key=value`);
        return [pair.slice(0, equals).trim(), pair.slice(equals + 1)];
      });
      // fromEntries creates own properties even for keys such as __proto__.
      return Object.fromEntries([...Object.entries(before ?? {}), ...pairs]);
    },
  };
}

export function integerFlag<F extends number | undefined>(named: FlagHeader, fallback: F): Flag<number | F> {
  return {
    ...named,
    value: 'int',
    fallback,
    parse(text, shown) {
      const number = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
      if (Number.isSafeInteger(number)) return number;
      throw invalidArgument(text, shown, `strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
    },
  };
}

function invalidArgument(text: string, shown: string, why: string): CommandError {
  return new CommandError(`invalid argument ${JSON.stringify(text)} for ${JSON.stringify(shown)} flag: ${why}`);
}

export interface ParsedArgs<Table extends FlagTable> {
  readonly flags: FlagValues<Table>;
  readonly args: readonly string[];
}

/** Parses flags anywhere before `--`. The last occurrence wins, except for lists. Throws CommandError. */
export function parseArgs<Table extends FlagTable>(table: Table, argv: readonly string[]): ParsedArgs<Table> {
  const values = new Map<string, unknown>();
  const args: string[] = [];
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') {
      args.push(...rest);
      break;
    }
    if (word.startsWith('--')) takeLong(table, word, rest, values);
    else if (word.startsWith('-') && word !== '-') takeShort(table, word, rest, values);
    else args.push(word);
  }
  const flags = Object.entries(table).map(([key, flag]) => [key, values.has(key) ? values.get(key) : flag.fallback]);
  return { flags: Object.fromEntries(flags) as FlagValues<Table>, args };
}

type Values = Map<string, unknown>;

function takeLong(table: FlagTable, word: string, rest: string[], values: Values): void {
  const equals = word.indexOf('=');
  const name = word.slice(2, equals < 0 ? undefined : equals);
  const [key, flag] = Object.entries(table).find(([, one]) => one.name === name) ?? [];
  if (key === undefined || flag === undefined) {
    const known = Object.values(table).flatMap((one) => (one.hidden === true ? [] : [one.name]));
    throw new CommandError(`unknown flag: --${name}${suggestion(name, known, (near) => `--${near}`)}`);
  }
  const given = equals < 0 ? undefined : word.slice(equals + 1);
  const text = given ?? (flag.value === '' ? 'true' : rest.shift());
  if (text === undefined) throw new CommandError(`flag needs an argument: --${name}`);
  values.set(key, flag.parse(text, renderFlag(flag), values.get(key)));
}

/** `-c`, `-cn value`, `-nvalue`, `-n=value`. */
function takeShort(table: FlagTable, word: string, rest: string[], values: Values): void {
  for (let letters = word.slice(1); letters !== '';) {
    const letter = letters[0]!;
    letters = letters.slice(1);
    const [key, flag] = Object.entries(table).find(([, one]) => one.short === letter) ?? [];
    if (key === undefined || flag === undefined) {
      throw new CommandError(`unknown shorthand flag: '${letter}' in ${word}`);
    }
    let text: string | undefined;
    if (letters.startsWith('=')) [text, letters] = [letters.slice(1), ''];
    else if (flag.value === '') text = 'true';
    else if (letters === '') text = rest.shift();
    else [text, letters] = [letters, ''];
    if (text === undefined) throw new CommandError(`flag needs an argument: '${letter}' in ${word}`);
    values.set(key, flag.parse(text, renderFlag(flag), values.get(key)));
  }
}

function renderFlag({ name, short }: Pick<Flag<unknown>, 'name' | 'short'>): string {
  return short === undefined ? `--${name}` : `-${short}, --${name}`;
}
