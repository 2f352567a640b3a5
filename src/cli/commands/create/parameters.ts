/** Parses the parameters of a flag, such as `src:my-pvc,bootorder:1`, with virtctl's error messages. Pure. */
import { UsageError } from '#lib/command-line/command-error.ts';

export function flagError(flag: string, why: string): UsageError {
  return new UsageError(`failed to parse "--${flag}" flag: ${why}`);
}

/** Throws UsageError for a parameter that is not in `known`. */
export function parseParameters<const Key extends string>(
  flag: string,
  text: string,
  known: readonly Key[],
): Readonly<Partial<Record<Key, string>>> {
  const found: Partial<Record<Key, string>> = {};
  for (const pair of text.split(',')) {
    const colon = pair.indexOf(':');
    if (colon < 0) throw flagError(flag, `params need to have at least one colon: ${pair}`);
    const [name, value] = [pair.slice(0, colon).trim(), pair.slice(colon + 1).trim()];
    const key = known.find((one) => one === name);
    if (key === undefined) throw flagError(flag, `unknown param(s): ${pair}; supported are ${known.join(', ')}`);
    if (value === '') throw flagError(flag, `${key} must not be empty`);
    if (found[key] !== undefined) throw flagError(flag, `${key} was specified twice`);
    found[key] = value;
  }
  return found;
}
