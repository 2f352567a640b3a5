/** Volume sources of pods only, mostly with a secret from the own namespace. */
import { persistentVolumeClaimTemplate } from '#engine/registry/kinds/shared/claim-spec.ts';
import { localObjectReference } from '#engine/registry/kinds/shared/references.ts';
import { bool, int32, list, map, obj, oneOf, quantity, str } from '#kube/schema-dsl.ts';

export const azureFileVolumeSource = obj(
  {
    readOnly: bool(),
    secretName: str(),
    shareName: str(),
  },
  { required: ['secretName', 'shareName'] },
);

export const cephFSVolumeSource = obj(
  {
    monitors: list(str(), { atomic: true }),
    path: str(),
    readOnly: bool(),
    secretFile: str(),
    secretRef: localObjectReference,
    user: str(),
  },
  { required: ['monitors'] },
);

export const cinderVolumeSource = obj(
  {
    fsType: str(),
    readOnly: bool(),
    secretRef: localObjectReference,
    volumeID: str(),
  },
  { required: ['volumeID'] },
);

export const csiVolumeSource = obj(
  {
    driver: str(),
    fsType: str(),
    nodePublishSecretRef: localObjectReference,
    readOnly: bool(),
    volumeAttributes: map(str()),
  },
  { required: ['driver'] },
);

export const emptyDirVolumeSource = obj({
  medium: str(),
  mode: int32(),
  sizeLimit: quantity(),
});

export const ephemeralVolumeSource = obj({
  volumeClaimTemplate: persistentVolumeClaimTemplate,
});

export const flexVolumeSource = obj(
  {
    driver: str(),
    fsType: str(),
    options: map(str()),
    readOnly: bool(),
    secretRef: localObjectReference,
  },
  { required: ['driver'] },
);

export const gitRepoVolumeSource = obj(
  {
    directory: str(),
    repository: str(),
    revision: str(),
  },
  { required: ['repository'] },
);

export const glusterfsVolumeSource = obj(
  {
    endpoints: str(),
    path: str(),
    readOnly: bool(),
  },
  { required: ['endpoints', 'path'] },
);

export const imageVolumeSource = obj({
  pullPolicy: oneOf(['Always', 'IfNotPresent', 'Never']),
  reference: str(),
});

export const iscsiVolumeSource = obj(
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
    secretRef: localObjectReference,
    targetPortal: str(),
  },
  { required: ['targetPortal', 'iqn', 'lun'] },
);

export const persistentVolumeClaimVolumeSource = obj(
  {
    claimName: str(),
    readOnly: bool(),
  },
  { required: ['claimName'] },
);

export const rbdVolumeSource = obj(
  {
    fsType: str(),
    image: str(),
    keyring: str({ default: '/etc/ceph/keyring' }),
    monitors: list(str(), { atomic: true }),
    pool: str({ default: 'rbd' }),
    readOnly: bool(),
    secretRef: localObjectReference,
    user: str({ default: 'admin' }),
  },
  { required: ['monitors', 'image'] },
);

export const scaleIOVolumeSource = obj(
  {
    fsType: str({ default: 'xfs' }),
    gateway: str(),
    protectionDomain: str(),
    readOnly: bool(),
    secretRef: localObjectReference,
    sslEnabled: bool(),
    storageMode: str({ default: 'ThinProvisioned' }),
    storagePool: str(),
    system: str(),
    volumeName: str(),
  },
  { required: ['gateway', 'system', 'secretRef'] },
);

export const storageOSVolumeSource = obj({
  fsType: str(),
  readOnly: bool(),
  secretRef: localObjectReference,
  volumeName: str(),
  volumeNamespace: str(),
});
