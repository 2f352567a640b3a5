/**
 * A compiled regular expression and the cost of its searches. RE2 has several algorithms with different costs:
 *
 *   words      `^(true|True)$` matches a few words: a set lookup without a search
 *   one pass   the next character always determines the next state: cheap per character
 *   DFA        decides whether there is a match. States and transitions are created when a text first needs them, at a
 *              cost proportional to the program size, and then cached: later texts are cheap
 *   others     locate a match: in the worst case the whole program runs at each character
 *
 * The costs are measured (see hostile.test.ts).
 */
import type { RE2JS } from 're2js';
import type { Budget } from '#cel/limits/budget.ts';

const TEST_BASE_UNITS = 20;
const FIND_BASE_UNITS = 60;
const ONE_PASS_UNITS = 3;
/** Units per instruction of the program and character. */
const STEP_UNITS = 2.5;
const FIND_UNITS = 1.5;
/** RE2's estimate in bytes for a state and for each of its entries. */
const STATE_BYTES = 200;
const ENTRY_BYTES = 8;
/** The DFA states that a regular expression keeps between searches. There may be thousands of regular expressions. */
const MAX_KEPT_BYTES = 65_536;

const WORDS = /^\^(?:\(([\w|/-]+)\)|([\w/-]+))\$$/;

/**
 * Returns the words that the pattern matches if it is a choice between words. Without flags, `^` and `$` match only the
 * ends of the text.
 */
function findWords(compiled: RE2JS): ReadonlySet<string> | undefined {
  const found = compiled.flags() === 0 ? WORDS.exec(compiled.pattern()) : null;
  if (found === null) return undefined;
  return new Set((found[1] ?? found[2] ?? '').split('|'));
}

export class Regex {
  readonly #compiled: RE2JS;
  readonly #words: ReadonlySet<string> | undefined;
  readonly #size: number;
  readonly #isOnePass: boolean;
  /** The transitions that were charged. */
  #chargedTransitions = 0;

  constructor(compiled: RE2JS) {
    this.#compiled = compiled;
    this.#words = findWords(compiled);
    this.#size = compiled.programSize();
    this.#isOnePass = compiled.re2().onepass !== null;
    // Builds the tables now, so that they count as compilation and not as part of the first search.
    if (!this.#isOnePass) void compiled.re2().dfa;
  }

  /** Reports whether the pattern matches anywhere in the text. */
  isFoundIn(text: string, budget: Budget): boolean {
    const { length } = text;
    if (this.#words !== undefined) {
      budget.charge(TEST_BASE_UNITS + length);
      return this.#words.has(text);
    }
    if (this.#isOnePass) {
      budget.charge(TEST_BASE_UNITS + length * ONE_PASS_UNITS);
      return this.#compiled.test(text);
    }
    const cost = (steps: number) => TEST_BASE_UNITS + length + Math.ceil(steps * this.#size * STEP_UNITS);
    const maxSteps = this.#maxTransitions(length);
    if (!this.#canCacheStates(length)) {
      budget.charge(cost(length + 1));
      const found = this.#compiled.test(text);
      this.#trimCache();
      return found;
    }
    // Refuses to start a search that could exceed the budget.
    if (cost(maxSteps) > budget.left) budget.charge(cost(maxSteps));
    const found = this.#compiled.test(text);
    const steps = Math.max(0, Math.min(length + 1, this.#cachedTransitions() - this.#chargedTransitions));
    this.#chargedTransitions += steps;
    this.#trimCache();
    budget.charge(cost(steps));
    return found;
  }

  /** Returns the maximum cost of locating a match in a text of this length. */
  findCost(length: number): number {
    const perCharacter = this.#isOnePass ? ONE_PASS_UNITS : 1 + this.#size * FIND_UNITS;
    return Math.ceil(FIND_BASE_UNITS + length * perCharacter);
  }

  /** The caller must charge findCost before each `find`. */
  matcher(text: string): ReturnType<RE2JS['matcher']> {
    return this.#compiled.matcher(text);
  }

  /** Each character creates at most one transition, and a small program has few states. */
  #maxTransitions(length: number): number {
    const states = 2 ** Math.min(this.#size - 2, 40);
    return Math.min(length + 1, states * this.#transitionsPerState);
  }

  get #transitionsPerState(): number {
    return this.#compiled.re2().dfa.numClasses + 1;
  }

  #cachedTransitions(): number {
    return this.#compiled.re2().dfa.stateCount * this.#transitionsPerState;
  }

  #trimCache(): void {
    const { dfa } = this.#compiled.re2();
    if (dfa.stateBudget - dfa.memBudget <= MAX_KEPT_BYTES) return;
    dfa.clearCache();
    this.#chargedTransitions = 0;
  }

  /**
   * Reports whether RE2's cache can hold all states that the text can create. Otherwise RE2 discards and recreates
   * them.
   */
  #canCacheStates(length: number): boolean {
    const { memBudget, failed } = this.#compiled.re2().dfa;
    const perState = STATE_BYTES + ENTRY_BYTES * (this.#size + this.#transitionsPerState);
    return !failed && Math.min(length + 2, this.#maxTransitions(length)) * perState < memBudget;
  }
}
