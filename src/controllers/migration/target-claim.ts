/** The target claim of the persistent state: new and empty for each migration, and without the mark of a VM. Pure. */
import { MIGRATION_NAME_LABEL } from '#api/names.ts';
import { STATE_LABEL, stateClaimName, stateOwnerOf, stateSuffixOf } from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { StoredMigration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import { buildStateClaim } from '#controllers/shared/persistent-state/build-state-claim.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant } from '#lib/invariant.ts';

const LABEL_MAX = 63;
const RETRIES = 9;

/** Returns the label value that names the migration on its claim: the uid if the name is too long for a label. */
function migrationLabelOf({ metadata: { name, uid } }: StoredMigration): string {
  return name.length <= LABEL_MAX ? name : uid;
}

export function isTargetClaimOf(claim: Stored<PersistentVolumeClaim>, migration: StoredMigration): boolean {
  return claim.metadata.labels?.[MIGRATION_NAME_LABEL] === migrationLabelOf(migration);
}

/** Derives a free claim name from the uid of the migration. The suffix is short, so that a name may be taken. */
export function targetClaimName(
  vmi: Stored<VirtualMachineInstance>,
  { migration: { metadata }, isClaimNameTaken }: Pick<MigrationWorld, 'migration' | 'isClaimNameTaken'>,
): string {
  const { vmName } = stateOwnerOf(vmi);
  const seeds = [metadata.uid, ...Array.from({ length: RETRIES }, (_, i) => `${metadata.uid}/${i}`)];
  const free = seeds.map((seed) => stateClaimName(vmName, stateSuffixOf(seed))).find((name) => !isClaimNameTaken(name));
  invariant(free !== undefined, 'one of several names is free');
  return free;
}

/**
 * Builds a claim with the size, class and modes of the source claim, owned by the VM or by an instance without a VM.
 */
export function buildTargetClaim(
  vmi: Stored<VirtualMachineInstance>,
  source: PersistentVolumeClaim,
  { migration, name }: { readonly migration: StoredMigration; readonly name: string },
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
