/**
 * What it costs to search with a regular expression, and the search. RE2 has several ways; each has its price:
 *
 *   words      `^(true|True)$` is one of a few words: they are looked up, nothing is searched
 *   one pass   the next character always says where to go on: little per character
 *   DFA        to tell whether there is a match. States and the ways between them are made when a text first needs
 *              them, each as dear as the program is long, and then kept: later texts cost little
 *   others     to tell where a match is: the whole program at each character, at worst
 *
 * The prices are measured (hostile.test.ts says with what).
 */
import type { RE2JS } from 're2js';
import type { Budget } from '#cel/budget.ts';

const TEST_BASE_UNITS = 20;
const FIND_BASE_UNITS = 60;
const ONE_PASS_UNITS = 3;
/** For one instruction of the program, at one character. */
const STEP_UNITS = 2.5;
const FIND_UNITS = 1.5;
/** RE2's own figures, in bytes: what a state takes, and each of its entries. */
const STATE_BYTES = 200;
const ENTRY_BYTES = 8;
/** What a regular expression may keep of its states between searches; there may be thousands of them. */
const MAX_KEPT_BYTES = 65_536;

const WORDS = /^\^(?:\(([\w|/-]+)\)|([\w/-]+))\$$/;

/** What alone it matches, where it is a choice between words. Without flags, `^` and `$` are the ends of the text. */
function wordsOf(compiled: RE2JS): ReadonlySet<string> | undefined {
  const found = compiled.flags() === 0 ? WORDS.exec(compiled.pattern()) : null;
  if (found === null) return undefined;
  return new Set((found[1] ?? found[2] ?? '').split('|'));
}

export class Regex {
  readonly #compiled: RE2JS;
  readonly #words: ReadonlySet<string> | undefined;
  readonly #size: number;
  readonly #isOnePass: boolean;
  /** Ways between states that were paid for. */
  #paid = 0;

  constructor(compiled: RE2JS) {
    this.#compiled = compiled;
    this.#words = wordsOf(compiled);
    this.#size = compiled.programSize();
    this.#isOnePass = compiled.re2().onepass !== null;
    // Its tables belong to what compiling costs, not to the first search.
    if (!this.#isOnePass) void compiled.re2().dfa;
  }

  /** Whether it is found anywhere in the text. */
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
    const price = (steps: number) => TEST_BASE_UNITS + length + Math.ceil(steps * this.#size * STEP_UNITS);
    const most = this.#mostSteps(length);
    if (!this.#hasRoomFor(length)) {
      budget.charge(price(length + 1));
      const found = this.#compiled.test(text);
      this.#forgetMuch();
      return found;
    }
    // Nothing is begun that could turn out too dear.
    if (price(most) > budget.left) budget.charge(price(most));
    const found = this.#compiled.test(text);
    const steps = Math.max(0, Math.min(length + 1, this.#knownSteps() - this.#paid));
    this.#paid += steps;
    this.#forgetMuch();
    budget.charge(price(steps));
    return found;
  }

  /** What a match costs at most, with its place, in a text of that length. */
  findCost(length: number): number {
    const perCharacter = this.#isOnePass ? ONE_PASS_UNITS : 1 + this.#size * FIND_UNITS;
    return Math.ceil(FIND_BASE_UNITS + length * perCharacter);
  }

  /** For findCost paid before each `find`. */
  matcher(text: string): ReturnType<RE2JS['matcher']> {
    return this.#compiled.matcher(text);
  }

  /** A character makes at most one new way; and a small program has few sets of places to be in. */
  #mostSteps(length: number): number {
    const states = 2 ** Math.min(this.#size - 2, 40);
    return Math.min(length + 1, states * this.#ways);
  }

  get #ways(): number {
    return this.#compiled.re2().dfa.numClasses + 1;
  }

  #knownSteps(): number {
    return this.#compiled.re2().dfa.stateCount * this.#ways;
  }

  #forgetMuch(): void {
    const { dfa } = this.#compiled.re2();
    if (dfa.stateBudget - dfa.memBudget <= MAX_KEPT_BYTES) return;
    dfa.clearCache();
    this.#paid = 0;
  }

  /** Whether RE2 keeps all states that the text may make; otherwise it forgets them and makes them again. */
  #hasRoomFor(length: number): boolean {
    const { memBudget, failed } = this.#compiled.re2().dfa;
    const perState = STATE_BYTES + ENTRY_BYTES * (this.#size + this.#ways);
    return !failed && Math.min(length + 2, this.#mostSteps(length)) * perState < memBudget;
  }
}
