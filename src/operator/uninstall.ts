/** How to take us off a cluster again: what to delete, in which order. Nothing is deleted here. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { isApiError } from '#kube/api-error.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import type { Desired } from '#operator/desired.ts';
import { installObjects } from '#operator/install.ts';
import { ADMISSION_GROUP } from '#operator/kinds.ts';

const MAX_NAMED = 5;

export type Uninstallation = { readonly refused: string } | { readonly commands: readonly string[] };

/**
 * Returns what to delete. Refused while there are VMs, which would be gone with their kind, and while there are records:
 * only our controllers take their finalizer off.
 */
export async function uninstallation(client: Client): Promise<Uninstallation> {
  for (const type of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_IDENTITIES]) {
    const names = await namesOf(client, type);
    if (names.length === 0) continue;
    const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
    const shown = names.slice(0, MAX_NAMED).join(', ');
    return {
      refused: `Cannot uninstall: there are ${names.length} ${type.plural} (${shown}${more}); delete them first, for they would be lost with their kind`,
    };
  }
  // Admission first, as nobody may answer for it any more; kinds after what is of them, our namespace at the end. Kinds of
  // others stay.
  const ours = installObjects().filter(({ once }) => once !== true);
  const isRule = ({ type }: Desired) => type.group === ADMISSION_GROUP;
  const ordered = [...ours.filter((one) => !isRule(one)), ...ours.filter(isRule)];
  const commands = ordered.toReversed().map(({ type, object: { metadata } }) => {
    const where = metadata.namespace === undefined ? '' : ` -n ${metadata.namespace}`;
    return `kubectl delete --ignore-not-found ${groupResource(type)} ${metadata.name}${where}`;
  });
  return { commands };
}

async function namesOf(client: Client, type: ResourceType): Promise<string[]> {
  try {
    const { items } = await listAll(client, type, {});
    return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return [];
    throw error;
  }
}
