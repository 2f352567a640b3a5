/** The claim into which the state of the VM goes: new and empty for every migration, and nobody's state yet. Pure. */
import { MIGRATION_NAME_LABEL } from '#api/names.ts';
import { STATE_LABEL, stateClaimName, stateOwnerOf, stateSuffixOf } from '#api/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Migration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import { buildStateClaim } from '#controllers/persistent-state/build-state-claim.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant } from '#lib/invariant.ts';

const LABEL_MAX = 63;
const MORE_NAMES = 9;

/** What a claim that a migration made says of it: names may be longer than labels. */
export function migrationLabelOf({ metadata: { name, uid } }: Migration): string {
  return name.length <= LABEL_MAX ? name : uid;
}

export function isTargetClaimOf(claim: Stored<PersistentVolumeClaim>, migration: Migration): boolean {
  return claim.metadata.labels?.[MIGRATION_NAME_LABEL] === migrationLabelOf(migration);
}

/** Made from the uid of the migration; the few digits may have been drawn before. */
export function targetClaimName(
  vmi: Stored<VirtualMachineInstance>,
  { migration: { metadata }, isTaken }: Pick<MigrationWorld, 'migration' | 'isTaken'>,
): string {
  const { vmName } = stateOwnerOf(vmi);
  const seeds = [metadata.uid, ...Array.from({ length: MORE_NAMES }, (_, i) => `${metadata.uid}/${i}`)];
  const free = seeds.map((seed) => stateClaimName(vmName, stateSuffixOf(seed))).find((name) => !isTaken(name));
  invariant(free !== undefined, 'one of several names is free');
  return free;
}

/** As large as the one that holds the state, in the same class and modes; its owner is the VM, or the lone instance. */
export function buildTargetClaim(
  vmi: Stored<VirtualMachineInstance>,
  source: PersistentVolumeClaim,
  { migration, name }: { readonly migration: Migration; readonly name: string },
): PersistentVolumeClaim {
  const { storageClassName, volumeMode = 'Filesystem', accessModes = [], resources } = source.spec;
  const [accessMode = 'ReadWriteOnce'] = accessModes;
  const claim = buildStateClaim(
    vmi,
    { storageClassName: storageClassName ?? '', volumeMode, accessMode, size: '' },
    '',
  );
  const { [STATE_LABEL]: _, ...labels } = claim.metadata.labels ?? {};
  return {
    ...claim,
    metadata: {
      ...claim.metadata,
      name,
      labels: { ...labels, [MIGRATION_NAME_LABEL]: migrationLabelOf(migration) },
      annotations: undefined,
    },
    spec: { ...(storageClassName === undefined ? {} : { storageClassName }), volumeMode, accessModes, resources },
  };
}
