/**
 * Defines a domain from an instance and creates it. All guests start here, those of pods and those of the host API. Problems
 * of the instance or the hypervisor are returned; all other errors are thrown.
 */
import type { FieldError } from '#kube/field-error.ts';
import { defineDomain, type DefineInput } from '#node/definition/define-domain.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError, type DiskProblem, type Hypervisor } from '#node/hypervisor/hypervisor.ts';

interface CreateDomainOptions {
  readonly paused?: boolean;
  readonly origin?: DomainDefinition['origin'];
  /** Returns further errors in the definition. */
  check?(definition: DomainDefinition): readonly FieldError[];
  /** Adds settings that an instance cannot express. */
  refine?(definition: DomainDefinition): DomainDefinition;
}

type CreateOutcome =
  | { readonly is: 'created'; readonly omittedDevices: readonly string[]; readonly omittedFeatures: readonly string[] }
  /** The definition is invalid. */
  | { readonly is: 'refused'; readonly problems: readonly FieldError[] }
  | {
      readonly is: 'failed';
      readonly permanent: boolean;
      readonly message: string;
      /** Set if a disk could not be opened. */
      readonly disk?: DiskProblem | undefined;
    };

export async function createDomain(
  input: DefineInput,
  { paused = false, origin, check = () => [], refine = (definition) => definition }: CreateDomainOptions,
  { hypervisor, signal }: { readonly hypervisor: Hypervisor; readonly signal: AbortSignal },
): Promise<CreateOutcome> {
  const defined = defineDomain(input);
  if (defined.problems !== undefined) return { is: 'refused', problems: defined.problems };
  const definition = refine(origin === undefined ? defined.definition : { ...defined.definition, origin });
  const problems = check(definition);
  if (problems.length > 0) return { is: 'refused', problems };
  try {
    await hypervisor.create(definition, { paused, signal });
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    const { permanent, message, disk } = error;
    return { is: 'failed', permanent, message, disk };
  }
  return { is: 'created', omittedDevices: defined.notes, omittedFeatures: defined.omitted };
}
