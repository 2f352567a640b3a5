/**
 * A report of an update that ignores errors in unchanged values (CRDValidationRatcheting), so that a schema can become
 * stricter without blocking existing objects. Inside anyOf, oneOf, allOf and not, errors are ignored only as a whole,
 * together with the value.
 */
import type { Correlation } from '#engine/registry/structural/correlation.ts';
import { ValidationReport } from '#engine/registry/structural/report.ts';
import type { FieldError } from '#kube/field-error.ts';

interface Step {
  /** Number of errors before this value. */
  readonly before: number;
  /** Undefined if the old value is unknown. */
  readonly correlation: Correlation | undefined;
}

/** Both versions of an object were converted to the same apiVersion and kind, so these never count as changed. */
const TYPE_FIELDS: ReadonlySet<string | number> = new Set(['apiVersion', 'kind']);

export class LenientReport extends ValidationReport {
  readonly #root: Correlation;
  readonly #steps: Step[] = [];
  #separateDepth = 0;

  constructor(root: Correlation) {
    super();
    this.#root = root;
  }

  override enter(key: string | number): void {
    super.enter(key);
    const last = this.#steps.at(-1);
    const around = last === undefined ? this.#root : last.correlation;
    const isFree = this.#separateDepth > 0 || (last === undefined && TYPE_FIELDS.has(key));
    this.#steps.push({ before: this.count, correlation: isFree ? undefined : around?.at(key) });
  }

  override leave(): void {
    super.leave();
    const { before, correlation } = this.#steps.pop()!;
    if (this.count > before && correlation?.isEqual === true) this.dropForUnchanged(before);
  }

  override runSeparately(check: () => void): { errors: FieldError[]; passed: number } {
    this.#separateDepth++;
    try {
      return super.runSeparately(check);
    } finally {
      this.#separateDepth--;
    }
  }

  override result(): FieldError[] {
    if (this.count > 0 && this.#root.isEqual) this.dropForUnchanged(0);
    return super.result();
  }
}
