/** What is noted while a request is served: warnings for the client, annotations for the audit record. Bounded. */
import type { AdmissionNotes } from '#engine/admission/admission.ts';
import type { Repeats } from '#engine/strict-faults.ts';

/** Clients and proxies refuse answers with too many or too long headers. */
const MAX_WARNINGS_LENGTH = 4096;
const MAX_WARNING_LENGTH = 1024;
const MAX_ANNOTATIONS = 100;
const MAX_ANNOTATION_LENGTH = 10 * 1024;

export class RequestNotes implements AdmissionNotes {
  /** Of the body, where it has fields twice: told together with the fields that its kind does not know. */
  repeats: Repeats | undefined;
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

  /** undefined = none. */
  get warnings(): readonly string[] | undefined {
    return this.#warnings;
  }

  get annotations(): ReadonlyMap<string, string> | undefined {
    return this.#annotations;
  }
}
