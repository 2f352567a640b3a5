/** Volume sources of persistent volumes only: secrets carry their namespace. */
import { objectReference, secretReference } from '#engine/registry/kinds/shared/references.ts';
import { bool, int32, list, map, obj, str } from '#kube/schema-dsl.ts';

export const azureFilePersistentVolumeSource = obj(
  {
    readOnly: bool(),
    secretName: str(),
    secretNamespace: str(),
    shareName: str(),
  },
  { required: ['secretName', 'shareName'] },
);

export const cephFSPersistentVolumeSource = obj(
  {
    monitors: list(str(), { atomic: true }),
    path: str(),
    readOnly: bool(),
    secretFile: str(),
    secretRef: secretReference,
    user: str(),
  },
  { required: ['monitors'] },
);

export const cinderPersistentVolumeSource = obj(
  {
    fsType: str(),
    readOnly: bool(),
    secretRef: secretReference,
    volumeID: str(),
  },
  { required: ['volumeID'] },
);

export const csiPersistentVolumeSource = obj(
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
);

export const flexPersistentVolumeSource = obj(
  {
    driver: str(),
    fsType: str(),
    options: map(str()),
    readOnly: bool(),
    secretRef: secretReference,
  },
  { required: ['driver'] },
);

export const glusterfsPersistentVolumeSource = obj(
  {
    endpoints: str(),
    endpointsNamespace: str(),
    path: str(),
    readOnly: bool(),
  },
  { required: ['endpoints', 'path'] },
);

export const iscsiPersistentVolumeSource = obj(
  {
    chapAuthDiscovery: bool(),
    chapAuthSession: bool(),
    fsType: str(),
    initiatorName: str(),
    iqn: str(),
    iscsiInterface: str({ default: 'default' }),
    lun: int32(),
    portals: list(str(), { atomic: true }),
    readOnly: bool(),
    secretRef: secretReference,
    targetPortal: str(),
  },
  { required: ['targetPortal', 'iqn', 'lun'] },
);

export const localVolumeSource = obj(
  {
    fsType: str(),
    path: str(),
  },
  { required: ['path'] },
);

export const rbdPersistentVolumeSource = obj(
  {
    fsType: str(),
    image: str(),
    keyring: str({ default: '/etc/ceph/keyring' }),
    monitors: list(str(), { atomic: true }),
    pool: str({ default: 'rbd' }),
    readOnly: bool(),
    secretRef: secretReference,
    user: str({ default: 'admin' }),
  },
  { required: ['monitors', 'image'] },
);

export const scaleIOPersistentVolumeSource = obj(
  {
    fsType: str({ default: 'xfs' }),
    gateway: str(),
    protectionDomain: str(),
    readOnly: bool(),
    secretRef: secretReference,
    sslEnabled: bool(),
    storageMode: str({ default: 'ThinProvisioned' }),
    storagePool: str(),
    system: str(),
    volumeName: str(),
  },
  { required: ['gateway', 'system', 'secretRef'] },
);

export const storageOSPersistentVolumeSource = obj({
  fsType: str(),
  readOnly: bool(),
  secretRef: objectReference,
  volumeName: str(),
  volumeNamespace: str(),
});
