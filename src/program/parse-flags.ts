/** Flags of the selfsame program: `--name value` and `--name=value`, or the variable SELFSAME_NAME. Pure. */
import { suggestion } from '#lib/nearest.ts';
import type { ProgramFlagTable, ProgramFlagValues } from './flag.ts';

export interface UsageError {
  /** The error message. */
  readonly usageError: string;
}

export type ProgramEnvironment = Readonly<Record<string, string | undefined>>;

export function parseFlags<Table extends ProgramFlagTable, Parsed>(
  table: Table,
  [args, env]: readonly [readonly string[], ProgramEnvironment],
  config: (options: ProgramFlagValues<Table>) => Parsed,
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
  return config(values as ProgramFlagValues<Table>);
}

/** Reads flag values from arguments. The last occurrence of a flag wins. */
function readArguments(table: ProgramFlagTable, args: readonly string[]): { texts: Map<string, string> } | UsageError {
  const known = new Map(Object.values(table).map((one) => [one.name, one]));
  const texts = new Map<string, string>();
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, name, inline] = /^--([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (name === undefined) return { usageError: `unexpected argument ${JSON.stringify(arg)}` };
    const flag = known.get(name);
    if (flag === undefined) {
      return { usageError: `unknown flag --${name}${suggestion(name, [...known.keys()], (near) => `--${near}`)}` };
    }
    const text = inline ?? (flag.bare === true ? 'true' : rest.shift());
    if (text === undefined) return { usageError: `--${name} needs a value` };
    texts.set(name, text);
  }
  return { texts };
}

/** Returns the environment without flag variables, for child processes that get all flags as arguments. */
export function withoutFlags(env: ProgramEnvironment): ProgramEnvironment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith(PREFIX)));
}

const PREFIX = 'SELFSAME_';

export function variableOf(flagName: string): string {
  return `${PREFIX}${flagName.toUpperCase().replaceAll('-', '_')}`;
}
