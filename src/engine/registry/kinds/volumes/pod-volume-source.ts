/** Volume sources of pods, whose references to secrets are in the pod's namespace. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { persistentVolumeClaimTemplate } from '#engine/registry/kinds/volumes/claim-spec.ts';
import { localObjectReference } from '#engine/registry/kinds/core/references.ts';
import { secretVolumeSources, storageOsVolumeSource } from '#engine/registry/kinds/volumes/secret-volume-source.ts';
import { bool, map, oneOf, quantity, str } from '#kube/schema-dsl.ts';

export const azureFileFields = {
  secretName: required(1, str(), 'Name of the Secret with the storage account name and key.'),
  shareName: required(2, str(), 'Name of the share.'),
  readOnly: optional(3, bool(), 'Whether the volume is read-only.'),
};

export const glusterfsFields = {
  endpoints: required(1, str(), 'Name of the Endpoints object of the Gluster servers.'),
  path: required(2, str(), 'Name of the Gluster volume.'),
  readOnly: optional(3, bool(), 'Whether the volume is read-only.'),
};

export const podVolumeSources = {
  ...secretVolumeSources('VolumeSource', localObjectReference),
  azureFile: apiType('core.v1.AzureFileVolumeSource', 'An Azure File share.', azureFileFields),
  csi: apiType('core.v1.CSIVolumeSource', 'An ephemeral volume of a CSI driver.', {
    driver: required(1, str(), 'Name of the CSI driver.'),
    readOnly: pointer(2, bool(), 'Whether the volume is read-only.'),
    fsType: pointer(3, str(), 'File system type of the volume.'),
    volumeAttributes: optional(4, map(str()), 'Driver-specific properties of the volume.'),
    nodePublishSecretRef: pointer(
      5,
      localObjectReference,
      'Secret for NodePublishVolume and NodeUnpublishVolume calls.',
    ),
  }),
  emptyDir: apiType('core.v1.EmptyDirVolumeSource', "A temporary directory that shares a pod's lifetime.", {
    medium: optional(1, str(), "Storage medium: Memory, or empty for the node's default medium."),
    sizeLimit: pointer(2, quantity(), 'Maximum size of the directory.'),
  }),
  ephemeral: apiType('core.v1.EphemeralVolumeSource', 'A volume that is created for a pod and deleted with it.', {
    volumeClaimTemplate: pointer(1, persistentVolumeClaimTemplate, 'Template of the PersistentVolumeClaim.'),
  }),
  gitRepo: apiType('core.v1.GitRepoVolumeSource', 'A clone of a Git repository. Deprecated.', {
    repository: required(1, str(), 'URL of the repository.'),
    revision: optional(2, str(), 'Commit hash of the revision.'),
    directory: optional(3, str(), 'Target directory of the clone.'),
  }),
  glusterfs: apiType('core.v1.GlusterfsVolumeSource', 'A Gluster volume.', glusterfsFields),
  image: apiType('core.v1.ImageVolumeSource', 'The files of an OCI image.', {
    reference: optional(1, str(), 'Name of the image.'),
    pullPolicy: optional(
      2,
      oneOf(['Always', 'IfNotPresent', 'Never']),
      'When to pull the image: Always, IfNotPresent or Never.',
    ),
  }),
  persistentVolumeClaim: apiType(
    'core.v1.PersistentVolumeClaimVolumeSource',
    'A PersistentVolumeClaim in the same namespace.',
    {
      claimName: required(1, str(), 'Name of the claim.'),
      readOnly: optional(2, bool(), 'Whether the volume is read-only.'),
    },
  ),
  storageos: storageOsVolumeSource('VolumeSource', localObjectReference),
};
