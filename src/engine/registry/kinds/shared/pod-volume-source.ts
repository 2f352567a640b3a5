/** Volume sources of pods, whose references to secrets are in the pod's namespace. */
import { persistentVolumeClaimTemplate } from '#engine/registry/kinds/shared/claim-spec.ts';
import { localObjectReference } from '#engine/registry/kinds/shared/references.ts';
import { secretVolumeSources, storageOsVolumeSource } from '#engine/registry/kinds/shared/secret-volume-source.ts';
import { bool, map, obj, oneOf, quantity, str } from '#kube/schema-dsl.ts';

export const azureFile = obj(
  {
    readOnly: bool(),
    secretName: str(),
    shareName: str(),
  },
  { required: ['secretName', 'shareName'] },
);

export const glusterfs = obj(
  {
    endpoints: str(),
    path: str(),
    readOnly: bool(),
  },
  { required: ['endpoints', 'path'] },
);

export const podVolumeSources = {
  ...secretVolumeSources(localObjectReference),
  azureFile,
  csi: obj(
    {
      driver: str(),
      fsType: str(),
      nodePublishSecretRef: localObjectReference,
      readOnly: bool(),
      volumeAttributes: map(str()),
    },
    { required: ['driver'] },
  ),
  emptyDir: obj({
    medium: str(),
    sizeLimit: quantity(),
  }),
  ephemeral: obj({
    volumeClaimTemplate: persistentVolumeClaimTemplate,
  }),
  gitRepo: obj(
    {
      directory: str(),
      repository: str(),
      revision: str(),
    },
    { required: ['repository'] },
  ),
  glusterfs,
  image: obj({
    pullPolicy: oneOf(['Always', 'IfNotPresent', 'Never']),
    reference: str(),
  }),
  persistentVolumeClaim: obj(
    {
      claimName: str(),
      readOnly: bool(),
    },
    { required: ['claimName'] },
  ),
  storageos: storageOsVolumeSource(localObjectReference),
};
