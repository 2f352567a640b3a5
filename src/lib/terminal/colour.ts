/** Colours, where the user wants them. Pure. */
import { styleText } from 'node:util';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';

export type Colour = 'red' | 'green' | 'yellow' | 'dim' | 'bold';

/** Colours a text, or returns it as it is. */
export type Painter = (colour: Colour, text: string) => string;

export const withoutColours: Painter = (_, text) => text;

/** A stream that may be a terminal. */
export interface MaybeTerminal {
  readonly isTTY?: boolean | undefined;
  /** The width of the terminal. Some report 0. */
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** Returns how to colour text for a stream. */
export function createPainter(stream: Pick<MaybeTerminal, 'isTTY'>, env: EnvironmentVariables): Painter {
  if (!hasColours(stream, env)) return withoutColours;
  return (colour, text) => styleText(colour, text, { validateStream: false });
}

/** FORCE_COLOR and NO_COLOR decide, in this order, as in Node.js; otherwise terminals have colours unless they are dumb. */
function hasColours(
  { isTTY }: Pick<MaybeTerminal, 'isTTY'>,
  { FORCE_COLOR, NO_COLOR, TERM }: EnvironmentVariables,
): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return !NO_COLOR && isTTY === true && TERM !== 'dumb';
}

/** Reports whether lines of this stream can be overwritten. Logs of CI systems keep every version of a line. */
export function isLiveTerminal({ isTTY }: Pick<MaybeTerminal, 'isTTY'>, { CI, TERM }: EnvironmentVariables): boolean {
  return isTTY === true && TERM !== 'dumb' && (!CI || CI === 'false');
}
