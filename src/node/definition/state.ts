/** Defines the persistent state of a guest: the content of its TPM and its EFI variables. */
import type { DomainSpec } from '#api/domain/domain.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { requestsPersistentVariables } from '#node/definition/firmware.ts';
import { requestsPersistentTpm } from '#node/definition/devices/tpm.ts';

/** Returns undefined if the guest has no persistent state, even if there is a directory for it. */
export function defineState(
  domain: DomainSpec,
  state: DomainDefinition['state'],
  problems: FieldError[],
): DomainDefinition['state'] {
  const persistentFields = [
    ...(requestsPersistentTpm(domain.devices ?? {}) ? ['spec.domain.devices.tpm.persistent'] : []),
    ...(requestsPersistentVariables(domain) ? ['spec.domain.firmware.bootloader.efi.persistent'] : []),
  ];
  if (persistentFields.length === 0) return undefined;
  if (state === undefined) {
    problems.push(
      ...persistentFields.map((field) =>
        forbiddenField(field, 'may not be true: the guest has no volume for its persistent state'),
      ),
    );
  }
  return state;
}
