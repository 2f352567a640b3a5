/** Lists the commands that remove Selfsame from a cluster, in order. Deletes nothing itself. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { isApiError } from '#kube/api-error.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { installObjects } from '#operator/install.ts';
import { ADMISSION_GROUP } from '#kube/cluster-kinds.ts';

const MAX_NAMED = 5;

type UninstallPlan = { readonly refused: string } | { readonly commands: readonly string[] };

/**
 * Returns the commands. Refuses while there are VMs, which would be deleted with their kind, and while there are
 * identity records, whose finalizer only our controllers remove.
 */
export async function planUninstall(client: Client): Promise<UninstallPlan> {
  for (const type of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_IDENTITIES]) {
    const names = await namesOf(client, type);
    if (names.length === 0) continue;
    const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
    const shown = names.slice(0, MAX_NAMED).join(', ');
    return {
      refused: `Cannot uninstall: there are ${names.length} ${type.plural} (${shown}${more}); delete them first, because they would be lost with their kind`,
    };
  }
  // Admission first, because its webhooks may not be running any more; kinds after their objects; our namespace last.
  // Third-party kinds are kept.
  const own = installObjects().filter(({ once }) => once !== true);
  const isRule = ({ type }: DesiredObject) => type.group === ADMISSION_GROUP;
  const ordered = [...own.filter((one) => !isRule(one)), ...own.filter(isRule)];
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
