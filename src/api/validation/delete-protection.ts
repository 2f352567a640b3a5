/** Checks the reason of a protection, and warns about label values that do not protect. */
import {
  looksLikeProtection,
  MAX_REASON_LENGTH,
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
} from '#api/protection/delete-protection.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';

/** A reason that is already stored is not checked again. */
export function checkProtectionReason({ metadata }: VirtualMachine, old: VirtualMachine | undefined): FieldError[] {
  const reason = metadata.annotations?.[PROTECTION_REASON_ANNOTATION] ?? '';
  if (reason.length <= MAX_REASON_LENGTH || reason === old?.metadata.annotations?.[PROTECTION_REASON_ANNOTATION]) {
    return [];
  }
  const field = `metadata.annotations[${PROTECTION_REASON_ANNOTATION}]`;
  const detail = `must have at most ${MAX_REASON_LENGTH} characters, but has ${reason.length}`;
  return [invalidValue(field, `${reason.slice(0, SHOWN)}…`, detail)];
}

/** Length of the reason in the error. */
const SHOWN = 20;

/** Warns when the value is set, not on later writes. */
export function protectionWarnings({ metadata }: VirtualMachine, old: VirtualMachine | undefined): string[] {
  const value = metadata.labels?.[PROTECTION_LABEL];
  if (!looksLikeProtection(value) || value === old?.metadata.labels?.[PROTECTION_LABEL]) return [];
  return [`label ${PROTECTION_LABEL}: "${value}" does not protect the VirtualMachine; only "true" and "True" do`];
}
