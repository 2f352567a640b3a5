/** The parameters of a call, from a file of JSON or from words. */
import { CommandError } from '#cli/flags.ts';
import { isRecord } from '#kube/meta.ts';

export type Parameters = Readonly<Record<string, unknown>>;
export type ReadFile = (path: string) => string;

const PAIR = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;

/** `FILE.json`, `key=value ...`, or both: words stand above the file. */
export function readParameters(words: readonly string[], readFile: ReadFile): Parameters {
  const [first, ...rest] = words;
  if (first === undefined) throw new CommandError('no parameters given; expected FILE.json or key=value');
  if (PAIR.test(first)) return fromPairs(words);
  return { ...fromFile(first, readFile), ...fromPairs(rest) };
}

/** What is wrapped in a call is named first: `VMID key=value ...`, or the whole call as FILE.json. */
export function readDeviceCall(words: readonly string[], key: string, readFile: ReadFile): Parameters {
  const [first, ...rest] = words;
  if (first === undefined) throw new CommandError('no parameters given; expected FILE.json, or VMID key=value');
  if (rest.length === 0) return fromFile(first, readFile);
  return { vmId: first, [key]: fromPairs(rest) };
}

function fromFile(path: string, readFile: ReadFile): Parameters {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    throw new CommandError(`Cannot read ${path}: ${(error as Error).message}`);
  }
  const value = parsed(text, path);
  if (!isRecord(value)) throw new CommandError(`${path} is not a JSON object`);
  return value;
}

function fromPairs(words: readonly string[]): Parameters {
  return Object.fromEntries(
    words.map((word) => {
      const [, key, text = ''] = PAIR.exec(word) ?? [];
      if (key === undefined) throw new CommandError(`unexpected argument "${word}"; expected key=value`);
      return [key, /^[[{]/.test(text) ? parsed(text, key) : text];
    }),
  );
}

function parsed(text: string, where: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new CommandError(`${where} is not JSON: ${(error as Error).message}`);
  }
}
