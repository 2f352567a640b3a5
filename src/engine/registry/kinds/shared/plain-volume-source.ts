/** Volume sources that are identical for pods and persistent volumes. */
import { bool, int32, list, obj, oneOf, str } from '#kube/schema-dsl.ts';

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
] as const;

export const plainVolumeSources = {
  awsElasticBlockStore: obj(
    {
      fsType: str(),
      partition: int32(),
      readOnly: bool(),
      volumeID: str(),
    },
    { required: ['volumeID'] },
  ),
  azureDisk: obj(
    {
      cachingMode: oneOf(['None', 'ReadOnly', 'ReadWrite'], { default: 'ReadWrite' }),
      diskName: str(),
      diskURI: str(),
      fsType: str({ default: 'ext4' }),
      kind: oneOf(['Dedicated', 'Managed', 'Shared'], { default: 'Shared' }),
      readOnly: bool({ default: false }),
    },
    { required: ['diskName', 'diskURI'] },
  ),
  fc: obj({
    fsType: str(),
    lun: int32(),
    readOnly: bool(),
    targetWWNs: list(str(), { atomic: true }),
    wwids: list(str(), { atomic: true }),
  }),
  flocker: obj({
    datasetName: str(),
    datasetUUID: str(),
  }),
  gcePersistentDisk: obj(
    {
      fsType: str(),
      partition: int32(),
      pdName: str(),
      readOnly: bool(),
    },
    { required: ['pdName'] },
  ),
  hostPath: obj(
    {
      path: str(),
      type: oneOf(HOST_PATH_TYPES, { default: '' }),
    },
    { required: ['path'] },
  ),
  nfs: obj(
    {
      path: str(),
      readOnly: bool(),
      server: str(),
    },
    { required: ['server', 'path'] },
  ),
  photonPersistentDisk: obj(
    {
      fsType: str(),
      pdID: str(),
    },
    { required: ['pdID'] },
  ),
  portworxVolume: obj(
    {
      fsType: str(),
      readOnly: bool(),
      volumeID: str(),
    },
    { required: ['volumeID'] },
  ),
  quobyte: obj(
    {
      group: str(),
      readOnly: bool(),
      registry: str(),
      tenant: str(),
      user: str(),
      volume: str(),
    },
    { required: ['registry', 'volume'] },
  ),
  vsphereVolume: obj(
    {
      fsType: str(),
      storagePolicyID: str(),
      storagePolicyName: str(),
      volumePath: str(),
    },
    { required: ['volumePath'] },
  ),
};
