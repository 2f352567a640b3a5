/** Flags as values: name, help, default and parser. parse-args.ts reads them from a command line. Pure. */

export interface Flag<T> {
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** Placeholder of the value in the help; '' for a switch. */
  readonly value: string;
  readonly help: string;
  readonly fallback: T;
  /** The default as shown in the help; none is shown without it. */
  readonly defaultText?: string;
  /** The flag, or its variable, must be given and not be empty. */
  readonly required?: boolean;
  /** The environment variable that sets the flag if the command line does not. */
  readonly variable?: string;
  /** Accepted, but omitted from the help. */
  readonly hidden?: boolean;
  /** Completions of its value. */
  readonly completes?: Completes;
  /** Parses a value. `before` is the value of an earlier occurrence. Throws FlagValueError, or CommandError as it is. */
  parse(text: string, before?: T): T;
}

/** Completions: fixed words, `file` for local files, or the kind of the objects whose names the program looks up. */
export type Completes = string | readonly string[];

export type FlagTable = Readonly<Record<string, Flag<unknown>>>;
export type FlagValues<Table extends FlagTable> = {
  readonly [Key in keyof Table]: Table[Key] extends Flag<infer T> ? T : never;
};

/** A value that a flag does not accept. The parser adds the value and the name of the flag. */
export class FlagValueError extends Error {
  override name = 'FlagValueError';
}

/** The parts of a flag that do not depend on the type of its value. */
export type FlagHeader = Pick<
  Flag<unknown>,
  'name' | 'short' | 'help' | 'hidden' | 'completes' | 'defaultText' | 'variable'
>;

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

export function switchFlag(header: FlagHeader): Flag<boolean> {
  return {
    ...header,
    value: '',
    fallback: false,
    parse(text) {
      if (TRUE.has(text) || FALSE.has(text)) return TRUE.has(text);
      throw new FlagValueError(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
    },
  };
}

export function textFlag(header: FlagHeader, value: string): Flag<string | undefined> {
  return { ...header, value, fallback: undefined, parse: (text) => text };
}

/** Creates a flag that must be given. Its value is never empty. */
export function requiredFlag(header: FlagHeader, value: string): Flag<string> {
  return { ...header, value, fallback: '', required: true, parse: (text) => text };
}

/** Creates a flag that can be repeated; each occurrence adds a value, commas included (pflag's stringArray). */
export function listFlag(header: FlagHeader, value: string): Flag<readonly string[]> {
  return { ...header, value, fallback: [], parse: (text, before = []) => [...before, text] };
}

/** Creates a flag `a,"b,c"` that can be repeated; each occurrence adds its values (pflag's stringSlice). */
export function commaListFlag(header: FlagHeader, value: string): Flag<readonly string[] | undefined> {
  return { ...header, value, fallback: undefined, parse: (text, before = []) => [...before, ...splitCommas(text)] };
}

/**
 * Creates a flag `a=b,c=d` that can be repeated; the last value of a key wins (pflag's stringToString). With a single `=`,
 * commas belong to the value. Undefined if not given.
 */
export function pairsFlag(header: FlagHeader, value: string): Flag<Readonly<Record<string, string>> | undefined> {
  return {
    ...header,
    value,
    fallback: undefined,
    parse(text, before) {
      const hasOne = text.indexOf('=') === text.lastIndexOf('=');
      const pairs = (hasOne ? [text.replace(/^"+|"+$/g, '')] : splitCommas(text)).map((pair): [string, string] => {
        const equals = pair.indexOf('=');
        if (equals < 0) throw new FlagValueError(`${pair} must be formatted as key=value`);
        return [pair.slice(0, equals).trim(), pair.slice(equals + 1)];
      });
      // fromEntries creates own properties even for keys such as __proto__.
      return Object.fromEntries([...Object.entries(before ?? {}), ...pairs]);
    },
  };
}

/** Splits one line of comma-separated values. A value in quotes may contain commas; "" is a quote in it. */
function splitCommas(text: string): string[] {
  if (text === '') return [];
  const values: string[] = [];
  for (let at = 0; at <= text.length; at++) {
    const [whole, quoted] = /^"((?:[^"]|"")*)"(?=,|$)/.exec(text.slice(at)) ?? [];
    const comma = text.indexOf(',', at);
    const end = whole === undefined ? (comma < 0 ? text.length : comma) : at + whole.length;
    const value = quoted?.replaceAll('""', '"') ?? text.slice(at, end);
    if (quoted === undefined && value.includes('"')) throw new FlagValueError('a quote is not closed or not escaped');
    values.push(value);
    at = end;
  }
  return values;
}

/** Creates a flag for an integer: decimal, or with a prefix 0x, 0o or 0b, as in Go. */
export function integerFlag<F extends number | undefined>(header: FlagHeader, fallback: F): Flag<number | F> {
  return {
    ...header,
    value: 'int',
    fallback,
    parse(text) {
      const [, sign, digits = ''] = /^([+-]?)(\d+|0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.exec(text) ?? [];
      const number = sign === undefined ? Number.NaN : Number(digits) * (sign === '-' ? -1 : 1);
      if (Number.isSafeInteger(number)) return number;
      const why = Number.isNaN(number) ? 'invalid syntax' : 'value out of range';
      throw new FlagValueError(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
    },
  };
}

interface CheckedFlag<T, F> extends FlagHeader {
  readonly value: string;
  readonly fallback: F;
  /** Completes the message "must be". */
  readonly mustBe: string;
  /** Returns undefined for a value that it does not accept. */
  read(text: string): T | undefined;
}

/** Creates a flag that accepts only some values. The fallback is shown as the default if it is a text or a number. */
export function checkedFlag<T, F = T>({ mustBe, read, ...flag }: CheckedFlag<T, F>): Flag<T | F> {
  const { fallback } = flag;
  const shown = typeof fallback === 'string' || typeof fallback === 'number' ? { defaultText: String(fallback) } : {};
  return {
    ...shown,
    ...flag,
    parse(text) {
      const value = read(text);
      if (value === undefined) throw new FlagValueError(`must be ${mustBe}`);
      return value;
    },
  };
}

/** Creates a flag with fixed values. */
export function choiceFlag<const W extends string>(
  header: FlagHeader & { readonly value: string },
  words: readonly W[],
  fallback: W,
): Flag<W> {
  return checkedFlag<W>({
    completes: words,
    ...header,
    fallback,
    mustBe: `one of ${words.join(', ')}`,
    read: (text) => words.find((word) => word === text),
  });
}
