/** The webhook's live reads about migrations, with its own account, and its only write. */
import type { EvictionParts } from '#admission/pod-evictions.ts';
import type { AdmissionLookup } from '#admission/validate.ts';
import { VMI_NAME_LABEL } from '#api/names.ts';
import { isFinalPhase, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { PODS } from '#kube/core-kinds.ts';
import { labelValueErrors } from '#kube/names.ts';

export type MigrationLookup = Pick<AdmissionLookup, 'pod' | 'instance' | 'activeMigrationsOf'>;

export function createMigrationLookup(client: Pick<Client, 'get' | 'list'>): MigrationLookup {
  return {
    pod: (namespace, name) => getIfExists(client, PODS, { namespace, name }),
    instance: (namespace, name) => getIfExists(client, VIRTUAL_MACHINE_INSTANCES, { namespace, name }),
    async activeMigrationsOf(namespace, vmiName) {
      // A name that is too long for a label is searched among all migrations (admission/mutate.ts).
      const few = labelValueErrors(vmiName).length === 0 ? { labelSelector: `${VMI_NAME_LABEL}=${vmiName}` } : {};
      const { items } = await listAll(client, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, ...few });
      return items.filter(({ spec, status }) => spec.vmiName === vmiName && !isFinalPhase(status?.phase));
    },
  };
}

/** Returns a function that marks an instance for evacuation. It fails if the instance was replaced meanwhile. */
export function createEvacuationMarker(client: Pick<Client, 'patch'>): EvictionParts['markForEvacuation'] {
  return async ({ metadata: { namespace, name, uid } }, evacuationNodeName) => {
    const body = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'add', path: '/status/evacuationNodeName', value: evacuationNodeName },
    ];
    const patch = { type: 'json' as const, body };
    await client.patch(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, patch, { subresource: 'status' });
  };
}
