/** The notes of a request that changes something, and the name of what it creates, which its path does not tell. */
import type { ValidatingStep } from '#engine/admission/admission.ts';
import { RequestNotes } from '#engine/notes.ts';

export class AuditNotes extends RequestNotes {
  /** '' while nobody knows. */
  name = '';
}

/** Refuses nothing. */
export const noteName: ValidatingStep = ({ operation, name, notes }) => {
  if (operation === 'CREATE' && notes instanceof AuditNotes) notes.name = name;
};
