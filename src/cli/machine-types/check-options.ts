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
import { NAMESPACES, type Node } from '#kube/core-kinds.ts';

type Api = Pick<ApiConnection, 'get'>;

/**
 * Throws CommandError for a namespace or a target that is not there, and warns of what will do harm; what one may not
 * read is not checked. Gives the nodes that it has seen.
 */
export async function checkOptions(
  api: Api,
  { namespace, target }: TransitionOptions,
  configuration: Configuration,
  say: (line: string) => void,
): Promise<readonly Pick<Node, 'metadata'>[]> {
  if (namespace !== undefined) await unlessForbidden(api.get(objectPath(NAMESPACES, { name: namespace })));
  const nodes = (await unlessForbidden(readNodes(api, say))) ?? [];
  const offered = offeredTypes(nodes);
  const fault = target === undefined ? undefined : targetFault(target, configuration, offered);
  if (fault !== undefined) throw new CommandError(`Cannot use the machine type ${JSON.stringify(target)}: ${fault}`);
  const harm = harmOf(target, configuration, offered);
  if (harm !== undefined) say(`Warning: ${harm}`);
  return nodes;
}

/** What may be done, but is hardly meant. */
export function harmOf(
  target: string | undefined,
  { defaultMachineType }: Pick<Configuration, 'defaultMachineType'>,
  offered: readonly OfferedType[],
): string | undefined {
  const type = target ?? defaultMachineType;
  const found = offered.find(({ name, aliases }) => name === type || aliases.includes(type));
  const isDefault = target === undefined ? ', the default of the KubeVirt object,' : '';
  if (found?.deprecated === true) return `the machine type ${JSON.stringify(type)}${isDefault} is deprecated`;
  if (found !== undefined || offered.length === 0) return undefined;
  const what = `no node offers the machine type ${JSON.stringify(type)}${isDefault} that VMs would start with`;
  return `${what}; choose another with --target-machine-type`;
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
