/** Builds the claim for the persistent state of a machine. The VM finds it by its label when it starts. Pure. */
import {
  STATE_LABEL,
  stateAnnotationOf,
  stateClaimName,
  stateKeyOf,
  stateSuffixOf,
} from '#api/storage/persistent-state.ts';
import type { Findings } from '#formats/findings.ts';
import type { MachineDescription } from '#formats/machine.ts';
import type { ManifestOptions } from '#formats/vm/to-manifests.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';

/** The size that the instance controller uses. */
const SIZE = '10Mi';

/** Returns a name that is the same for the same VM, so that a repeated import reuses the claim. */
export function stateClaimFor(vmName: string): string {
  return stateClaimName(vmName, stateSuffixOf(`import of ${vmName}`));
}

export function stateManifests(
  { state }: MachineDescription,
  { name, namespace, stateStorageClass, storageClass = stateStorageClass, stateModes }: ManifestOptions,
  findings: Findings,
): PersistentVolumeClaim[] {
  if (state === undefined) return [];
  if (state.file === undefined) {
    findings.addNote('the file does not contain the persistent state of TPM and EFI: both start empty');
    return [];
  }
  return [
    {
      apiVersion: apiVersionOf(PERSISTENT_VOLUME_CLAIMS),
      kind: PERSISTENT_VOLUME_CLAIMS.kind,
      metadata: {
        name: stateClaimFor(name),
        namespace,
        labels: { [STATE_LABEL]: stateKeyOf(name) },
        annotations: { [stateAnnotationOf(name)]: 'true' },
      },
      spec: {
        accessModes: [stateModes?.accessMode ?? 'ReadWriteOnce'],
        ...(stateModes !== undefined && { volumeMode: stateModes.volumeMode }),
        ...(storageClass !== undefined && { storageClassName: storageClass }),
        resources: { requests: { storage: SIZE } },
      },
    },
  ];
}
