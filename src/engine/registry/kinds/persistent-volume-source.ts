/** Volume sources of persistent volumes, whose references to secrets and endpoints include a namespace. */
import { objectReference, secretReference } from '#engine/registry/kinds/shared/references.ts';
import { azureFile, glusterfs } from '#engine/registry/kinds/shared/pod-volume-source.ts';
import { secretVolumeSources, storageOsVolumeSource } from '#engine/registry/kinds/shared/secret-volume-source.ts';
import { bool, map, obj, str } from '#kube/schema-dsl.ts';

export const persistentVolumeSources = {
  ...secretVolumeSources(secretReference),
  azureFile: obj({ ...azureFile.properties, secretNamespace: str() }, { required: ['secretName', 'shareName'] }),
  csi: obj(
    {
      controllerExpandSecretRef: secretReference,
      controllerPublishSecretRef: secretReference,
      driver: str(),
      fsType: str(),
      nodeExpandSecretRef: secretReference,
      nodePublishSecretRef: secretReference,
      nodeStageSecretRef: secretReference,
      readOnly: bool(),
      volumeAttributes: map(str()),
      volumeHandle: str(),
    },
    { required: ['driver', 'volumeHandle'] },
  ),
  glusterfs: obj({ ...glusterfs.properties, endpointsNamespace: str() }, { required: ['endpoints', 'path'] }),
  local: obj(
    {
      fsType: str(),
      path: str(),
    },
    { required: ['path'] },
  ),
  storageos: storageOsVolumeSource(objectReference),
};
