/** What people write about the protection of a VM: the reason, and values of the label that protect nothing. */
import {
  looksMeant,
  MAX_REASON_LENGTH,
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
} from '#api/delete-protection.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';

/** One that is there already is left alone. */
export function checkProtectionReason({ metadata }: VirtualMachine, old: VirtualMachine | undefined): FieldError[] {
  const reason = metadata.annotations?.[PROTECTION_REASON_ANNOTATION] ?? '';
  if (reason.length <= MAX_REASON_LENGTH || reason === old?.metadata.annotations?.[PROTECTION_REASON_ANNOTATION]) {
    return [];
  }
  const field = `metadata.annotations[${PROTECTION_REASON_ANNOTATION}]`;
  const detail = `must have at most ${MAX_REASON_LENGTH} characters, but has ${reason.length}`;
  return [invalidValue(field, `${reason.slice(0, SHOWN)}…`, detail)];
}

/** Nobody reads more of it. */
const SHOWN = 20;

/** Told when the value is set, not at each write after that. */
export function protectionWarnings({ metadata }: VirtualMachine, old: VirtualMachine | undefined): string[] {
  const value = metadata.labels?.[PROTECTION_LABEL];
  if (!looksMeant(value) || value === old?.metadata.labels?.[PROTECTION_LABEL]) return [];
  return [`label ${PROTECTION_LABEL}: "${value}" does not protect the VirtualMachine; only "true" and "True" do`];
}
