/** Checks the options of a transition against the cluster before the Job is created. */
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { checkMachineType } from '#api/validation/spec/machine.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { listNodeMetadata } from '#cli/machine-types/read-fleet.ts';
import { offeredTypes, type OfferedType } from '#cli/machine-types/supported-types.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { collectionPath, objectPath } from '#client/resource-path.ts';
import { ApiError } from '#kube/api-error.ts';
import { NAMESPACES, type Node } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { suggestion } from '#lib/text/nearest.ts';

type Api = Pick<ApiConnection, 'get'>;

/**
 * Throws if the namespace, the named VM or the target machine type does not exist, and reports a warning for a risky target.
 * Skips what the user may not read. Returns the nodes.
 */
export async function checkOptions(
  api: Api,
  { namespace, name, target }: TransitionOptions,
  configuration: Configuration,
  report: (line: string) => void,
): Promise<readonly Pick<Node, 'metadata'>[]> {
  if (namespace !== undefined) await unlessForbidden(api.get(objectPath(NAMESPACES, { name: namespace })));
  if (name !== undefined) await unlessForbidden(checkNamedVm(api, name, namespace, report));
  const nodes = (await unlessForbidden(listNodeMetadata(api, report))) ?? [];
  const offered = offeredTypes(nodes);
  const error = target === undefined ? undefined : findTargetError(target, configuration, offered);
  if (error !== undefined) throw new CommandError(`Cannot use the machine type ${JSON.stringify(target)}: ${error}`);
  const warning = findTargetWarning(target, configuration, offered);
  if (warning !== undefined) report(`Warning: ${warning}`);
  return nodes;
}

/** Throws CommandError if no VM in the namespace, or in any, has the name. */
async function checkNamedVm(
  api: Api,
  name: string,
  namespace: string | undefined,
  report: (line: string) => void,
): Promise<void> {
  const nameOf = (object: unknown) => (object as Stored).metadata.name;
  const names = await listCollection(api, { path: collectionPath(VIRTUAL_MACHINES, namespace) }, nameOf, report);
  if (names.includes(name)) return;
  const where = namespace === undefined ? 'any namespace' : `namespace ${JSON.stringify(namespace)}`;
  const near = suggestion(name, names) || '; list the VMs with kubectl get vm -A';
  throw new CommandError(`Cannot select VM ${name}: there is no such VM in ${where}${near}`);
}

/** Returns a warning for a target that is allowed but probably unintended. */
export function findTargetWarning(
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

/** Returns why the target cannot be used, or undefined. If no node offers any type, every target is accepted. */
export function findTargetError(
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

async function unlessForbidden<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}
