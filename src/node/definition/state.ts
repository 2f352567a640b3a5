/** Where a guest keeps what outlives it: the content of its TPM, its EFI variables. */
import type { Domain } from '#api/domain/domain.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { keepsVariables } from '#node/definition/firmware.ts';
import { keepsTpm } from '#node/definition/devices/tpm.ts';

/** Undefined where nothing of the guest outlives it, whatever there is to keep it in. */
export function defineState(
  domain: Domain,
  state: DomainDefinition['state'],
  problems: FieldError[],
): DomainDefinition['state'] {
  const kept = [
    ...(keepsTpm(domain.devices ?? {}) ? ['spec.domain.devices.tpm.persistent'] : []),
    ...(keepsVariables(domain) ? ['spec.domain.firmware.bootloader.efi.persistent'] : []),
  ];
  if (kept.length === 0) return undefined;
  if (state === undefined) {
    problems.push(
      ...kept.map((field) => forbiddenField(field, 'may not be true: the guest has no volume for its state')),
    );
  }
  return state;
}
