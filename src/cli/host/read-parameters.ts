/** Reads the parameters of a call from a JSON file or from arguments. */
import type { ReadFile } from '#client/kubeconfig.ts';
import { CommandError, UsageError } from '#lib/command-line/command-error.ts';
import { isRecord } from '#kube/meta.ts';

export type HostParameters = Readonly<Record<string, unknown>>;

const PAIR = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;

/** Reads `FILE.json`, `key=value ...`, or both. Arguments take precedence over the file. */
export function readParameters(words: readonly string[], readFile: ReadFile): HostParameters {
  const [first, ...rest] = words;
  if (first === undefined) throw new UsageError('no parameters given; expected FILE.json or key=value');
  if (PAIR.test(first)) return parsePairWords(words);
  return { ...parseFile(first, readFile), ...parsePairWords(rest) };
}

/** Reads `VMID key=value ...`, where the pairs become the value of `key`, or the whole call from FILE.json. */
export function readDeviceCall(words: readonly string[], key: string, readFile: ReadFile): HostParameters {
  const [first, ...rest] = words;
  if (first === undefined) throw new UsageError('no parameters given; expected FILE.json, or VMID key=value');
  if (rest.length === 0) return parseFile(first, readFile);
  return { vmId: first, [key]: parsePairWords(rest) };
}

function parseFile(path: string, readFile: ReadFile): HostParameters {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    throw new CommandError(`Cannot read ${path}: ${(error as Error).message}`);
  }
  const value = parseJson(text, path);
  if (!isRecord(value)) throw new CommandError(`${path} is not a JSON object`);
  return value;
}

function parsePairWords(words: readonly string[]): HostParameters {
  return Object.fromEntries(
    words.map((word) => {
      const [, key, text = ''] = PAIR.exec(word) ?? [];
      if (key === undefined) throw new UsageError(`unexpected argument "${word}"; expected key=value`);
      return [key, /^[[{]/.test(text) ? parseJson(text, key) : text];
    }),
  );
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new CommandError(`${where} is not JSON: ${(error as Error).message}`);
  }
}
