/** Volume sources that are identical for pods and persistent volumes. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { bool, int32, list, oneOf, str } from '#kube/schema-dsl.ts';

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
  awsElasticBlockStore: apiType('core.v1.AWSElasticBlockStoreVolumeSource', 'An AWS Elastic Block Store disk.', {
    volumeID: required(1, str(), 'ID of the volume.'),
    fsType: optional(2, str(), 'File system type of the volume.'),
    partition: optional(3, int32(), 'Number of the partition to mount. Unset means the whole device.'),
    readOnly: optional(4, bool(), 'Whether the volume is read-only.'),
  }),
  azureDisk: apiType('core.v1.AzureDiskVolumeSource', 'An Azure data disk.', {
    diskName: required(1, str(), 'Name of the disk.'),
    diskURI: required(2, str(), 'URI of the disk.'),
    cachingMode: pointer(
      3,
      oneOf(['None', 'ReadOnly', 'ReadWrite'], { default: 'ReadWrite' }),
      'Host caching mode: None, ReadOnly or ReadWrite.',
    ),
    fsType: pointer(4, str({ default: 'ext4' }), 'File system type of the volume.'),
    readOnly: pointer(5, bool({ default: false }), 'Whether the volume is read-only.'),
    kind: pointer(
      6,
      oneOf(['Dedicated', 'Managed', 'Shared'], { default: 'Shared' }),
      'Kind of the disk: Shared, Dedicated or Managed.',
    ),
  }),
  fc: apiType('core.v1.FCVolumeSource', 'A Fibre Channel disk.', {
    targetWWNs: optional(1, list(str(), { atomic: true }), 'World wide names of the target.'),
    lun: pointer(2, int32(), 'Logical unit number of the target.'),
    fsType: optional(3, str(), 'File system type of the volume.'),
    readOnly: optional(4, bool(), 'Whether the volume is read-only.'),
    wwids: optional(
      5,
      list(str(), { atomic: true }),
      'World wide identifiers of the disk. Mutually exclusive with targetWWNs and lun.',
    ),
  }),
  flocker: apiType('core.v1.FlockerVolumeSource', 'A Flocker dataset.', {
    datasetName: optional(1, str(), 'Name of the dataset.'),
    datasetUUID: optional(2, str(), 'UUID of the dataset.'),
  }),
  gcePersistentDisk: apiType('core.v1.GCEPersistentDiskVolumeSource', 'A Google Compute Engine persistent disk.', {
    pdName: required(1, str(), 'Name of the disk.'),
    fsType: optional(2, str(), 'File system type of the volume.'),
    partition: optional(3, int32(), 'Number of the partition to mount. Unset means the whole device.'),
    readOnly: optional(4, bool(), 'Whether the volume is read-only.'),
  }),
  hostPath: apiType('core.v1.HostPathVolumeSource', 'A file or directory of the node.', {
    path: required(1, str(), 'Path on the node.'),
    type: pointer(
      2,
      oneOf(HOST_PATH_TYPES, { default: '' }),
      'Type of the file, such as Directory, File or Socket. Empty means that nothing is checked.',
    ),
  }),
  nfs: apiType('core.v1.NFSVolumeSource', 'An NFS export.', {
    server: required(1, str(), 'Hostname or IP address of the server.'),
    path: required(2, str(), 'Path that the server exports.'),
    readOnly: optional(3, bool(), 'Whether the volume is read-only.'),
  }),
  photonPersistentDisk: apiType('core.v1.PhotonPersistentDiskVolumeSource', 'A Photon persistent disk.', {
    pdID: required(1, str(), 'ID of the disk.'),
    fsType: optional(2, str(), 'File system type of the volume.'),
  }),
  portworxVolume: apiType('core.v1.PortworxVolumeSource', 'A Portworx volume.', {
    volumeID: required(1, str(), 'ID of the volume.'),
    fsType: optional(2, str(), 'File system type of the volume.'),
    readOnly: optional(3, bool(), 'Whether the volume is read-only.'),
  }),
  quobyte: apiType('core.v1.QuobyteVolumeSource', 'A Quobyte volume.', {
    registry: required(1, str(), 'Addresses of the Quobyte registry services.'),
    volume: required(2, str(), 'Name of the volume.'),
    readOnly: optional(3, bool(), 'Whether the volume is read-only.'),
    user: optional(4, str(), 'User that owns the volume.'),
    group: optional(5, str(), 'Group that owns the volume.'),
    tenant: optional(6, str(), 'Tenant that owns the volume.'),
  }),
  vsphereVolume: apiType('core.v1.VsphereVirtualDiskVolumeSource', 'A vSphere virtual disk.', {
    volumePath: required(1, str(), 'Path of the virtual disk.'),
    fsType: optional(2, str(), 'File system type of the volume.'),
    storagePolicyName: optional(3, str(), 'Name of the storage policy profile.'),
    storagePolicyID: optional(4, str(), 'ID of the storage policy profile.'),
  }),
};
