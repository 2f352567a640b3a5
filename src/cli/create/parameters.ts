/** `src:my-pvc,bootorder:1`: parameters of one flag, in virtctl's words for what is wrong. Pure. */
import { CommandError } from '#cli/flags.ts';

export function flagFault(flag: string, why: string): CommandError {
  return new CommandError(`failed to parse "--${flag}" flag: ${why}`);
}

/** Throws CommandError for what is not among `known`. */
export function parseParameters<const Key extends string>(
  flag: string,
  text: string,
  known: readonly Key[],
): Readonly<Partial<Record<Key, string>>> {
  const found: Partial<Record<Key, string>> = {};
  for (const pair of text.split(',')) {
    const colon = pair.indexOf(':');
    if (colon < 0) throw flagFault(flag, `params need to have at least one colon: ${pair}`);
    const [name, value] = [pair.slice(0, colon).trim(), pair.slice(colon + 1).trim()];
    const key = known.find((one) => one === name);
    if (key === undefined) throw flagFault(flag, `unknown param(s): ${pair}; supported are ${known.join(', ')}`);
    if (value === '') throw flagFault(flag, `${key} must not be empty`);
    if (found[key] !== undefined) throw flagFault(flag, `${key} was specified twice`);
    found[key] = value;
  }
  return found;
}
