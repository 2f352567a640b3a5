/**
 * The function `template.format(args)`: parses templates and implements the clauses that are the same in every style.
 * The styles are those of Kubernetes (format-quoted.ts) and of the specification (testing/format-plain.ts).
 */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { typeOfValue } from '#cel/evaluate/type-of.ts';
import { goQuote } from '#cel/extensions/go-quote.ts';
import { method } from '#cel/extensions/overload.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import type { Overload } from '#cel/library.ts';
import { DYN, STRING, listOf } from '#cel/type.ts';
import type { CelList, CelValue } from '#cel/value.ts';
import { CelFault, CelUint } from '#cel/value.ts';

/** Throws FormatError. */
type Clause = (value: CelValue, text: FormatText, precision: number | undefined) => void;

export interface FormatStyle {
  readonly string: Clause;
  readonly decimal: Clause;
  readonly fixed: Clause;
  readonly scientific: Clause;
}

/** A value that cannot be formatted, with the message of cel-go. */
export class FormatError extends Error {
  override name = 'FormatError';
}

/** The text so far. Charges for each piece before it is added. */
export class FormatText {
  readonly budget: Budget;
  #text = '';

  constructor(budget: Budget) {
    this.budget = budget;
  }

  add(piece: string): void {
    this.budget.charge(1 + bytesCost(piece.length));
    this.#text += piece;
  }

  /** Charges for a piece of this length before it is built. */
  charge(length: number): void {
    this.budget.charge(bytesCost(length));
  }

  toString(): string {
    return this.#text;
  }
}

const MAX_PRECISION = 100;
/** Units for a call, and for each clause. */
const FORMAT_COST = 10;

export function formatOverload(style: FormatStyle): Overload {
  const clauses = clausesOf(style);
  return method<[string, CelList]>('string_format', [STRING, listOf(DYN)], STRING, (budget, template, args) => {
    budget.charge(FORMAT_COST);
    const text = new FormatText(budget);
    try {
      formatTemplate(template, args, clauses, text);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      budget.charge(3 * THROW_COST); // Most errors are caught and thrown again by several callers.
      return new CelFault(error.message);
    }
    return text.toString();
  });
}

function formatTemplate(template: string, args: CelList, clauses: ReadonlyMap<string, Clause>, text: FormatText): void {
  let next = 0;
  let start = 0;
  for (let at = template.indexOf('%'); at >= 0; at = template.indexOf('%', start)) {
    text.add(template.slice(start, at));
    if (template.charAt(at + 1) === '%') {
      text.add('%');
      start = at + 2;
      continue;
    }
    if (next >= args.size) throw new FormatError(`index ${next} out of range`);
    if (at + 1 === template.length) throw new FormatError('unexpected end of string');
    text.budget.charge(FORMAT_COST);
    const { precision, letter, end } = readClause(template, at + 1);
    const clause = clauses.get(letter);
    if (clause === undefined) throw clauseError(`unrecognized formatting clause "${letter}"`);
    writeClause(clause, args.at(next), text, precision);
    next++;
    start = end;
  }
  text.add(template.slice(start));
}

function writeClause(clause: Clause, value: CelValue, text: FormatText, precision: number | undefined): void {
  try {
    clause(value, text, precision);
  } catch (error) {
    throw error instanceof FormatError ? new FormatError(`error during formatting: ${error.message}`) : error;
  }
}

function clauseError(problem: string): FormatError {
  return new FormatError(`could not parse formatting clause: ${problem}`);
}

/** Parses the clause after a percent sign. */
function readClause(template: string, at: number): { precision: number | undefined; letter: string; end: number } {
  let end = at;
  let precision: number | undefined;
  if (template.charAt(at) === '.') {
    end++;
    while (/[0-9]/.test(template.charAt(end))) end++;
    precision = readPrecision(template.slice(at + 1, end), end === template.length);
  }
  const letter = String.fromCodePoint(template.codePointAt(end) ?? 0);
  return { precision, letter, end: end + letter.length };
}

function readPrecision(digits: string, atEnd: boolean): number {
  const problem = (what: string) => clauseError(`error while parsing precision: ${what}`);
  if (atEnd) throw problem('could not find end of precision specifier');
  if (digits === '') {
    throw problem(`error while converting precision to integer: strconv.Atoi: parsing ${goQuote('')}: invalid syntax`);
  }
  const precision = Number(digits);
  if (precision > MAX_PRECISION) {
    throw problem(`precision ${digits} exceeds maximum allowed precision ${MAX_PRECISION}`);
  }
  return precision;
}

function clausesOf(style: FormatStyle): ReadonlyMap<string, Clause> {
  return new Map<string, Clause>([
    ['s', style.string],
    ['d', style.decimal],
    ['f', style.fixed],
    ['e', style.scientific],
    ['b', writeBinary],
    ['o', writeOctal],
    ['x', (value, text) => writeHex(value, text, (digits) => digits)],
    ['X', (value, text) => writeHex(value, text, (digits) => digits.toUpperCase())],
  ]);
}

/** Returns undefined if the value is neither int nor uint. */
export function integerOf(value: CelValue): bigint | undefined {
  return typeof value === 'bigint' ? value : value instanceof CelUint ? value.value : undefined;
}

export function describeGiven(value: CelValue): string {
  return `was given ${typeOfValue(value).name}`;
}

function writeBinary(value: CelValue, text: FormatText): void {
  const integer = typeof value === 'boolean' ? BigInt(value) : integerOf(value);
  if (integer === undefined) {
    throw new FormatError(`only integers and bools can be formatted as binary, ${describeGiven(value)}`);
  }
  text.add(integer.toString(2));
}

function writeOctal(value: CelValue, text: FormatText): void {
  const integer = integerOf(value);
  if (integer === undefined)
    throw new FormatError(`octal clause can only be used on integers, ${describeGiven(value)}`);
  text.add(integer.toString(8));
}

function writeHex(value: CelValue, text: FormatText, cased: (digits: string) => string): void {
  const integer = integerOf(value);
  if (integer !== undefined) return text.add(cased(integer.toString(16)));
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) {
    throw new FormatError(`only integers, byte buffers, and strings can be formatted as hex, ${describeGiven(value)}`);
  }
  text.charge(value.length * 2);
  text.add(cased(Buffer.from(value as string).toString('hex')));
}
