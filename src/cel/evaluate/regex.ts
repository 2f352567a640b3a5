/**
 * Regular expressions in linear time (RE2), paid for before the work. Compiled ones are kept: a constant at its place
 * in the plan, others in a small cache.
 *
 * RE2 runs as a DFA that is built while it reads. A small program has few states and then costs little per character;
 * a larger one may need a new state for every character, each as dear as the program is long. So the price rises
 * steeply where the measured time does (hostile.test.ts).
 */
import { RE2JS } from 're2js';
import type { Budget } from '#cel/budget.ts';
import { estimateSize } from '#cel/evaluate/regex-size.ts';
import { CelFault } from '#cel/value.ts';

/** Longer ones than people write; compiling takes time in the size. */
const MAX_PATTERN = 2000;
const MAX_PROGRAM = 5000;
const COMPILE_BASE_UNITS = 1000;
const COMPILE_UNITS = 100;
/** Programs up to this size have too few states to hurt. */
const SMALL_PROGRAM = 18;
const MATCH_BASE_UNITS = 10;
const MAX_CACHED = 128;

export class Regex {
  readonly #compiled: RE2JS;
  readonly size: number;

  constructor(compiled: RE2JS) {
    this.#compiled = compiled;
    this.size = compiled.programSize();
  }

  /** For functions that need groups or places: charge matchCost first. */
  get compiled(): RE2JS {
    return this.#compiled;
  }

  /** Whether it is found anywhere in the text. */
  isFoundIn(text: string, budget: Budget): boolean {
    budget.charge(this.matchCost(text.length));
    return this.#compiled.test(text);
  }

  matchCost(length: number): number {
    const perCharacter = this.size <= SMALL_PROGRAM ? 1 : this.size * 1.5;
    return Math.ceil(MATCH_BASE_UNITS + length * perCharacter);
  }
}

const cache = new Map<string, Regex | CelFault>();

/** Compiled, or why it cannot be. Charges for compiling, also where it was kept: a price must not depend on others. */
export function regexOf(pattern: string, budget: Budget): Regex | CelFault {
  if (pattern.length > MAX_PATTERN) return new CelFault(`regular expression is longer than ${MAX_PATTERN} characters`);
  budget.charge(COMPILE_BASE_UNITS + pattern.length);
  const { program, tables } = estimateSize(pattern);
  if (program > MAX_PROGRAM) return new CelFault('regular expression is too large');
  budget.charge((program + tables) * COMPILE_UNITS);
  const known = cache.get(pattern);
  if (known !== undefined) return known;
  const compiled = compile(pattern);
  if (cache.size >= MAX_CACHED) {
    const [oldest] = cache.keys();
    if (oldest !== undefined) cache.delete(oldest);
  }
  cache.set(pattern, compiled);
  return compiled;
}

/** For a pattern that stands in the source: compiled and paid for at the first use. */
export function constantRegex(pattern: string): (budget: Budget) => Regex | CelFault {
  let known: Regex | CelFault | undefined;
  return (budget) => (known ??= regexOf(pattern, budget));
}

function compile(pattern: string): Regex | CelFault {
  try {
    return new Regex(RE2JS.compile(pattern));
  } catch (error) {
    const { message } = error as Error;
    return new CelFault(message.startsWith('error parsing regexp') ? message : `error parsing regexp: ${message}`);
  }
}
