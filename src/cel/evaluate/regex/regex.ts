/**
 * Regular expressions with linear-time matching (RE2), charged before the work. Constant patterns are compiled once per
 * place in the plan; other patterns are kept in a small cache.
 */
import { RE2JS } from 're2js';
import type { Budget } from '#cel/limits/budget.ts';
import { Regex } from '#cel/evaluate/regex/regex-search.ts';
import { estimateRegexSize } from '#cel/evaluate/regex/regex-size.ts';
import { CelFault } from '#cel/value.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';

/** Bounds the compile time, which grows with the size. */
const MAX_PATTERN = 2000;
const MAX_PROGRAM = 5000;
const COMPILE_BASE_UNITS = 2000;
const COMPILE_UNITS = 100;
const MAX_CACHED = 128;

const cache = new BoundedCache<string, Regex | CelFault>({ maxEntries: MAX_CACHED, maxWeight: MAX_CACHED });

/**
 * Returns the compiled pattern, or a fault if it is invalid. Charges for compilation even if the pattern is cached, so
 * that the cost does not depend on other expressions.
 */
export function compileRegex(pattern: string, budget: Budget): Regex | CelFault {
  if (pattern.length > MAX_PATTERN) return new CelFault(`regular expression is longer than ${MAX_PATTERN} characters`);
  budget.charge(COMPILE_BASE_UNITS + pattern.length);
  const { program, tables } = estimateRegexSize(pattern);
  if (program > MAX_PROGRAM) return new CelFault('regular expression is too large');
  budget.charge((program + tables) * COMPILE_UNITS);
  const known = cache.get(pattern);
  if (known !== undefined) return known;
  const compiled = compile(pattern);
  cache.set(pattern, compiled, 1);
  return compiled;
}

/** Prepares a constant pattern. The first use compiles and charges. */
export function prepareRegex(pattern: string): (budget: Budget) => Regex | CelFault {
  let known: Regex | CelFault | undefined;
  return (budget) => (known ??= compileRegex(pattern, budget));
}

function compile(pattern: string): Regex | CelFault {
  try {
    return new Regex(RE2JS.compile(pattern));
  } catch (error) {
    const { message } = error as Error;
    return new CelFault(message.startsWith('error parsing regexp') ? message : `error parsing regexp: ${message}`);
  }
}
