/** What one validation found so far, and where it stands. Bounded: past the limit further faults are not listed. */
import { Trail } from '#engine/registry/structural/trail.ts';
import type { FieldError } from '#kube/field-error.ts';

/** Enough for any reader; a body of 3 MiB could hold a million faults. */
const MAX_ERRORS = 256;

export class Report extends Trail {
  #errors: FieldError[] = [];
  /** Those that hold for old values, too. */
  readonly #firm = new Set<FieldError>();
  readonly #ofLists = new Set<FieldError>();
  /** How far the walk came: anyOf and oneOf explain the alternative that fits best. */
  passed = 0;

  get failed(): boolean {
    return this.#errors.length > 0;
  }

  add(error: FieldError): void {
    if (this.#errors.length < MAX_ERRORS) this.#errors.push(error);
  }

  /** What nobody may keep, not even where the value was there before. */
  addFirm(error: FieldError): void {
    this.#firm.add(error);
    this.add(error);
  }

  /** Of the type of a list: that keys and items are unique. */
  addOfList(error: FieldError): void {
    this.#ofLists.add(error);
    this.addFirm(error);
  }

  isFirm(error: FieldError): boolean {
    return this.#firm.has(error);
  }

  isOfList(error: FieldError): boolean {
    return this.#ofLists.has(error);
  }

  addAll(errors: readonly FieldError[]): void {
    for (const error of errors) this.add(error);
  }

  /** `Invalid value: <value>: <path> in body <fault>`. */
  invalid(value: unknown, fault: string): void {
    const path = this.path();
    this.add({
      reason: 'FieldValueInvalid',
      field: path,
      message: `Invalid value: ${JSON.stringify(value)}: ${path} in body ${fault}`,
    });
  }

  wrongType(wanted: string, got: string): void {
    const path = this.path();
    const shown = JSON.stringify(got);
    this.add({
      reason: 'FieldValueTypeInvalid',
      field: path,
      message: `Invalid value: ${shown}: ${path} in body must be of type ${wanted}: ${shown}`,
    });
  }

  /** Faults that kube-apiserver reports without a field. */
  general(message: string): void {
    this.add({ reason: 'FieldValueInvalid', field: '<nil>', message: `Invalid value: "": ${message}` });
  }

  /** Runs `check` apart: its faults are returned and not added. */
  apart(check: () => void): { errors: FieldError[]; passed: number } {
    const outer = this.#errors;
    const passedBefore = this.passed;
    this.#errors = [];
    check();
    const result = { errors: this.#errors, passed: this.passed - passedBefore };
    this.#errors = outer;
    return result;
  }

  /** How many there are so far. */
  get count(): number {
    return this.#errors.length;
  }

  /** Takes back what was found since then and is not firm. */
  forgive(since: number): void {
    const kept = this.#errors.slice(since).filter((error) => this.#firm.has(error));
    this.#errors.splice(since, Infinity, ...kept);
  }

  /** Each fault once: alternatives often find the same. */
  result(): FieldError[] {
    if (this.#errors.length < 2) return this.#errors;
    const seen = new Map<string, FieldError>();
    for (const error of this.#errors) {
      const key = `${error.field} ${error.message}`;
      if (!seen.has(key)) seen.set(key, error);
    }
    return [...seen.values()];
  }
}

export type Check<T = unknown> = (value: T, report: Report) => void;
