/**
 * A report of an update that forgives what is wrong in values that did not change (CRDValidationRatcheting): a schema
 * may become stricter without locking up the objects that it has. Not inside of anyOf, oneOf, allOf and not: those are
 * forgiven as a whole, with the value that they are about.
 */
import type { Correlation } from '#engine/registry/structural/correlation.ts';
import { Report } from '#engine/registry/structural/report.ts';
import type { FieldError } from '#kube/field-error.ts';

interface Step {
  /** What was found before this value. */
  readonly before: number;
  /** undefined = nothing is known of what was there. */
  readonly correlation: Correlation | undefined;
}

/** What both versions of an object were converted to cannot be told to have changed. */
const TYPE_FIELDS: ReadonlySet<string | number> = new Set(['apiVersion', 'kind']);

export class LenientReport extends Report {
  readonly #root: Correlation;
  readonly #steps: Step[] = [];
  #apart = 0;

  constructor(root: Correlation) {
    super();
    this.#root = root;
  }

  override enter(key: string | number): void {
    super.enter(key);
    const last = this.#steps.at(-1);
    const around = last === undefined ? this.#root : last.correlation;
    const isFree = this.#apart > 0 || (last === undefined && TYPE_FIELDS.has(key));
    this.#steps.push({ before: this.count, correlation: isFree ? undefined : around?.at(key) });
  }

  override leave(): void {
    super.leave();
    const { before, correlation } = this.#steps.pop()!;
    if (this.count > before && correlation?.isEqual === true) this.forgive(before);
  }

  override apart(check: () => void): { errors: FieldError[]; passed: number } {
    this.#apart++;
    try {
      return super.apart(check);
    } finally {
      this.#apart--;
    }
  }

  override result(): FieldError[] {
    if (this.count > 0 && this.#root.isEqual) this.forgive(0);
    return super.result();
  }
}
