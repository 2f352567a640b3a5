/** The notes of a write request, including the name of a created object, which is not in its path. */
import type { ValidatingStep } from '#engine/admission/admission.ts';
import { RequestNotes } from '#engine/handlers/request-notes.ts';

export class AuditNotes extends RequestNotes {
  /** '' while it is unknown. */
  name = '';
}

/** Records the name; never refuses a request. */
export const noteName: ValidatingStep = ({ operation, name, notes }) => {
  if (operation === 'CREATE' && notes instanceof AuditNotes) notes.name = name;
};
