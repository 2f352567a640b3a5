/** Flags of the selfsame program: `--name value` and `--name=value`, or the variable SELFSAME_NAME. Pure. */
import type { Completes } from '#cli/flags.ts';
import { suggestion } from '#lib/nearest.ts';

export interface UsageError {
  /** What is wrong, as one sentence for people. */
  readonly usageError: string;
}

export interface ProgramFlag<T> {
  readonly name: string;
  /** What stands for the value in the help. */
  readonly value: string;
  readonly help: string;
  /** As the help shows it. */
  readonly fallbackText?: string;
  readonly fallback: T;
  readonly completes?: Completes;
  /** The complaint completes "… must be". */
  parse(text: string): { ok: T } | { mustBe: string };
}

export type ProgramFlags = Readonly<Record<string, ProgramFlag<unknown>>>;
export type ProgramValues<Table extends ProgramFlags> = {
  readonly [Key in keyof Table]: Table[Key] extends ProgramFlag<infer T> ? T : never;
};

export type Environment = Readonly<Record<string, string | undefined>>;

export function parseFlags<Table extends ProgramFlags, Parsed>(
  table: Table,
  [args, env]: readonly [readonly string[], Environment],
  config: (options: ProgramValues<Table>) => Parsed,
): Parsed | UsageError {
  const given = readArguments(table, args);
  if ('usageError' in given) return given;
  const values: Record<string, unknown> = {};
  for (const [key, { name, fallback, parse }] of Object.entries(table)) {
    const fromArgs = given.texts.get(name);
    const text = fromArgs ?? env[variableOf(name)];
    const source = fromArgs === undefined ? variableOf(name) : `--${name}`;
    const parsed = text === undefined ? { ok: fallback } : parse(text);
    if ('mustBe' in parsed) return { usageError: `${source} must be ${parsed.mustBe}, not ${JSON.stringify(text)}` };
    values[key] = parsed.ok;
  }
  return config(values as ProgramValues<Table>);
}

/** The last one of a name counts, as everywhere. */
function readArguments(table: ProgramFlags, args: readonly string[]): { texts: Map<string, string> } | UsageError {
  const known = Object.values(table).map(({ name }) => name);
  const texts = new Map<string, string>();
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, name, inline] = /^--([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (name === undefined) return { usageError: `unexpected argument ${JSON.stringify(arg)}` };
    if (!known.includes(name)) {
      return { usageError: `unknown flag --${name}${suggestion(name, known, (near) => `--${near}`)}` };
    }
    const text = inline ?? rest.shift();
    if (text === undefined) return { usageError: `--${name} needs a value` };
    texts.set(name, text);
  }
  return { texts };
}

export function variableOf(flagName: string): string {
  return `SELFSAME_${flagName.toUpperCase().replaceAll('-', '_')}`;
}
