/** Whether the machine type that VMs are to get may be had, before anything is made. */
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { checkMachineType } from '#api/validation/machine.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { readNodes } from '#cli/machine-types/read-nodes.ts';
import { offeredTypes, type OfferedType } from '#cli/machine-types/supported-types.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { objectPath } from '#client/resource-path.ts';
import { ApiError } from '#kube/api-error.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';

type Api = Pick<ApiConnection, 'get'>;

/** Throws CommandError for a namespace or a target that is not there; what one may not read is not checked. */
export async function checkOptions(
  api: Api,
  { namespace, target }: TransitionOptions,
  configuration: Configuration,
  say: (line: string) => void,
): Promise<void> {
  if (namespace !== undefined) await unlessForbidden(api.get(objectPath(NAMESPACES, { name: namespace })));
  if (target === undefined) return;
  const nodes = await unlessForbidden(readNodes(api, say));
  const fault = targetFault(target, configuration, offeredTypes(nodes ?? []));
  if (fault !== undefined) throw new CommandError(`Cannot use the machine type ${JSON.stringify(target)}: ${fault}`);
}

/** Where no node offers anything, nothing is known about it. */
export function targetFault(
  target: string,
  configuration: Configuration,
  offered: readonly OfferedType[],
): string | undefined {
  if (checkMachineType(target, 'type', configuration).length > 0) {
    return `the KubeVirt object allows only ${configuration.emulatedMachines.join(', ')}`;
  }
  const isOffered = offered.some(({ name, aliases }) => name === target || aliases.includes(target));
  if (isOffered || offered.length === 0) return undefined;
  return 'no node offers it; see virtctl update machine-types supported';
}

async function unlessForbidden<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}
