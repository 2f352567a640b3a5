/** Volume sources that pods and persistent volumes describe alike. */
import { bool, int32, list, obj, oneOf, str } from '#kube/schema-dsl.ts';

export const awsElasticBlockStoreVolumeSource = obj(
  {
    fsType: str(),
    partition: int32(),
    readOnly: bool(),
    volumeID: str(),
  },
  { required: ['volumeID'] },
);

export const azureDiskVolumeSource = obj(
  {
    cachingMode: oneOf(['None', 'ReadOnly', 'ReadWrite'], { default: 'ReadWrite' }),
    diskName: str(),
    diskURI: str(),
    fsType: str({ default: 'ext4' }),
    kind: oneOf(['Dedicated', 'Managed', 'Shared'], { default: 'Shared' }),
    readOnly: bool({ default: false }),
  },
  { required: ['diskName', 'diskURI'] },
);

export const fcVolumeSource = obj({
  fsType: str(),
  lun: int32(),
  readOnly: bool(),
  targetWWNs: list(str(), { atomic: true }),
  wwids: list(str(), { atomic: true }),
});

export const flockerVolumeSource = obj({
  datasetName: str(),
  datasetUUID: str(),
});

export const gcePersistentDiskVolumeSource = obj(
  {
    fsType: str(),
    partition: int32(),
    pdName: str(),
    readOnly: bool(),
  },
  { required: ['pdName'] },
);

export const hostPathVolumeSource = obj(
  {
    path: str(),
    type: str({ default: '' }),
  },
  { required: ['path'] },
);

export const nfsVolumeSource = obj(
  {
    path: str(),
    readOnly: bool(),
    server: str(),
  },
  { required: ['server', 'path'] },
);

export const photonPersistentDiskVolumeSource = obj(
  {
    fsType: str(),
    pdID: str(),
  },
  { required: ['pdID'] },
);

export const portworxVolumeSource = obj(
  {
    fsType: str(),
    readOnly: bool(),
    volumeID: str(),
  },
  { required: ['volumeID'] },
);

export const quobyteVolumeSource = obj(
  {
    group: str(),
    readOnly: bool(),
    registry: str(),
    tenant: str(),
    user: str(),
    volume: str(),
  },
  { required: ['registry', 'volume'] },
);

export const vsphereVirtualDiskVolumeSource = obj(
  {
    fsType: str(),
    storagePolicyID: str(),
    storagePolicyName: str(),
    volumePath: str(),
  },
  { required: ['volumePath'] },
);
