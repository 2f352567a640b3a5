/** The notes of a request: warnings for the client, and annotations for the audit record. Bounded. */
import type { AdmissionNotes, ValidatingStep } from '#engine/admission/admission.ts';
import type { DuplicateFields } from '#engine/body/strict-decoding-errors.ts';

/** Clients and proxies reject responses with too many or too long headers. */
const MAX_WARNINGS_LENGTH = 4096;
const MAX_WARNING_LENGTH = 1024;
const MAX_ANNOTATIONS = 100;
const MAX_ANNOTATION_LENGTH = 10 * 1024;

export class RequestNotes implements AdmissionNotes {
  /** The name of a created object, which is not in its path; '' while it is unknown. */
  name = '';
  /** Duplicate fields of the body, reported together with its unknown fields. */
  duplicates: DuplicateFields | undefined;
  #warnings: string[] | undefined;
  #length = 0;
  #annotations: Map<string, string> | undefined;

  warn(message: string): void {
    const text = message.slice(0, MAX_WARNING_LENGTH);
    const known = (this.#warnings ??= []);
    if (text === '' || known.includes(text) || this.#length + text.length > MAX_WARNINGS_LENGTH) return;
    this.#length += text.length;
    known.push(text);
  }

  annotate(key: string, value: string): void {
    const known = (this.#annotations ??= new Map());
    if (known.has(key) || known.size >= MAX_ANNOTATIONS) return;
    known.set(key, value.slice(0, MAX_ANNOTATION_LENGTH));
  }

  /** Undefined if there are none. */
  get warnings(): readonly string[] | undefined {
    return this.#warnings;
  }

  get annotations(): ReadonlyMap<string, string> | undefined {
    return this.#annotations;
  }
}

/** Notes the name of a created object for the audit record; never refuses a request. */
export const noteName: ValidatingStep = ({ operation, name, notes }) => {
  if (operation === 'CREATE' && notes instanceof RequestNotes) notes.name = name;
};
