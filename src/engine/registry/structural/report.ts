/** The errors of one validation and its current position. Bounded: beyond the limit, errors are dropped. */
import { Trail } from '#engine/registry/structural/trail.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

/** Enough for any reader; a body of 3 MiB could have a million errors. */
const MAX_ERRORS = 256;

export class ValidationReport extends Trail {
  #errors: FieldError[] = [];
  /** Errors that also apply to unchanged values. */
  readonly #evenIfUnchanged = new Set<FieldError>();
  readonly #ofLists = new Set<FieldError>();
  /** Progress of the walk: anyOf and oneOf report the alternative that matches best. */
  passed = 0;

  get failed(): boolean {
    return this.#errors.length > 0;
  }

  add(error: FieldError): void {
    if (this.#errors.length < MAX_ERRORS) this.#errors.push(error);
  }

  /** Adds an error that applies even if the value is unchanged. */
  addEvenIfUnchanged(error: FieldError): void {
    this.#evenIfUnchanged.add(error);
    this.add(error);
  }

  /** Adds an error about the uniqueness of the keys or items of a list. */
  addOfList(error: FieldError): void {
    this.#ofLists.add(error);
    this.addEvenIfUnchanged(error);
  }

  isFirm(error: FieldError): boolean {
    return this.#evenIfUnchanged.has(error);
  }

  isOfList(error: FieldError): boolean {
    return this.#ofLists.has(error);
  }

  addAll(errors: readonly FieldError[]): void {
    for (const error of errors) this.add(error);
  }

  /** Adds `Invalid value: <value>: <path> in body <message>`. */
  invalid(value: unknown, message: string): void {
    const path = this.path();
    this.add({
      reason: 'FieldValueInvalid',
      field: path,
      message: `Invalid value: ${JSON.stringify(value)}: ${path} in body ${message}`,
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

  /** Adds an error that kube-apiserver reports without a field. */
  general(message: string): void {
    this.add({ reason: 'FieldValueInvalid', field: '<nil>', message: `Invalid value: "": ${message}` });
  }

  /** Runs `check` separately: returns its errors instead of adding them. */
  runSeparately(check: () => void): { errors: FieldError[]; passed: number } {
    const outer = this.#errors;
    const passedBefore = this.passed;
    this.#errors = [];
    check();
    const result = { errors: this.#errors, passed: this.passed - passedBefore };
    this.#errors = outer;
    return result;
  }

  /** Number of errors so far. */
  get count(): number {
    return this.#errors.length;
  }

  /** Drops the errors since then that do not apply to unchanged values. */
  dropForUnchanged(since: number): void {
    const kept = this.#errors.slice(since).filter((error) => this.#evenIfUnchanged.has(error));
    this.#errors.splice(since, Infinity, ...kept);
  }

  /** Returns the errors without duplicates: alternatives often find the same. */
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

export type Check<T = unknown> = (value: T, report: ValidationReport) => void;
/** Compiles nested schemas. */
export type CompileNode = (schema: Schema) => Check;
