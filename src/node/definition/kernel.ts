/** Defines the kernel that is booted directly. The caller knows the files of the image. */
import type { DomainSpec } from '#api/domain/domain.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import { invalidValue, requiredValue, unsupportedValue, type FieldError } from '#kube/field-error.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';

export interface KernelFiles {
  readonly kernelPath: string;
  readonly initrdPath?: string;
}

export function defineKernel(
  { firmware }: DomainSpec,
  files: KernelFiles | undefined,
  problems: FieldError[],
): DomainDefinition['kernel'] {
  const boot = firmware?.kernelBoot;
  if (boot === undefined) return undefined;
  const field = 'spec.domain.firmware.kernelBoot.container';
  if (boot.container === undefined) {
    problems.push(requiredValue(field, 'the image that has the kernel'));
  } else if (files === undefined) {
    problems.push(missingFilesError(`${field}.image`, boot.container.image));
  }
  return files === undefined ? undefined : { ...files, arguments: boot.kernelArgs ?? '' };
}

/** Returns the error for an unknown image, or for a known one whose files this node does not have. */
function missingFilesError(field: string, image: string): FieldError {
  if (image.split(':')[0] !== GUEST_IMAGE) return unsupportedValue(field, image, [GUEST_IMAGE]);
  return invalidValue(field, image, 'the files of the built-in guest are not on this node');
}
