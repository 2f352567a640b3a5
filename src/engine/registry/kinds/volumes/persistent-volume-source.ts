/** Volume sources of persistent volumes, whose references to secrets and endpoints include a namespace. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { objectReference, secretReference } from '#engine/registry/kinds/core/references.ts';
import { azureFileFields, glusterfsFields } from '#engine/registry/kinds/volumes/pod-volume-source.ts';
import { plainVolumeSources as plain } from '#engine/registry/kinds/volumes/plain-volume-source.ts';
import { secretVolumeSources, storageOsVolumeSource } from '#engine/registry/kinds/volumes/secret-volume-source.ts';
import { bool, map, str } from '#kube/schema-dsl.ts';

const own = {
  ...secretVolumeSources('PersistentVolumeSource', secretReference),
  azureFile: apiType('core.v1.AzureFilePersistentVolumeSource', 'An Azure File share.', {
    ...azureFileFields,
    secretNamespace: pointer(4, str(), 'Namespace of the Secret.', { omitEmpty: false }),
  }),
  csi: apiType('core.v1.CSIPersistentVolumeSource', 'A volume of a CSI driver.', {
    driver: required(1, str(), 'Name of the CSI driver.'),
    volumeHandle: required(2, str(), 'Unique ID of the volume that the driver returned from CreateVolume.'),
    readOnly: optional(3, bool(), 'Whether the volume is read-only.'),
    fsType: optional(4, str(), 'File system type of the volume.'),
    volumeAttributes: optional(5, map(str()), 'Driver-specific properties of the volume.'),
    controllerPublishSecretRef: pointer(
      6,
      secretReference,
      'Secret for ControllerPublishVolume and ControllerUnpublishVolume calls.',
    ),
    nodeStageSecretRef: pointer(7, secretReference, 'Secret for NodeStageVolume and NodeUnstageVolume calls.'),
    nodePublishSecretRef: pointer(8, secretReference, 'Secret for NodePublishVolume and NodeUnpublishVolume calls.'),
    controllerExpandSecretRef: pointer(9, secretReference, 'Secret for ControllerExpandVolume calls.'),
    nodeExpandSecretRef: pointer(10, secretReference, 'Secret for NodeExpandVolume calls.'),
  }),
  glusterfs: apiType('core.v1.GlusterfsPersistentVolumeSource', 'A Gluster volume.', {
    ...glusterfsFields,
    endpointsNamespace: pointer(4, str(), 'Namespace of the Endpoints object.'),
  }),
  local: apiType('core.v1.LocalVolumeSource', 'A disk, partition or directory of one node.', {
    path: required(1, str(), 'Path on the node.'),
    fsType: pointer(2, str(), 'File system type of the volume.'),
  }),
  storageos: storageOsVolumeSource('PersistentVolumeSource', objectReference),
};

export const persistentVolumeSources = {
  gcePersistentDisk: pointer(1, plain.gcePersistentDisk, 'A Google Compute Engine persistent disk.'),
  awsElasticBlockStore: pointer(2, plain.awsElasticBlockStore, 'An AWS Elastic Block Store disk.'),
  hostPath: pointer(3, plain.hostPath, 'A file or directory of the node.'),
  glusterfs: pointer(4, own.glusterfs, 'A Gluster volume.'),
  nfs: pointer(5, plain.nfs, 'An NFS export.'),
  rbd: pointer(6, own.rbd, 'A Ceph RBD image.'),
  iscsi: pointer(7, own.iscsi, 'An iSCSI disk.'),
  cinder: pointer(8, own.cinder, 'An OpenStack Cinder volume.'),
  cephfs: pointer(9, own.cephfs, 'A CephFS directory.'),
  fc: pointer(10, plain.fc, 'A Fibre Channel disk.'),
  flocker: pointer(11, plain.flocker, 'A Flocker dataset.'),
  flexVolume: pointer(12, own.flexVolume, 'A volume of a FlexVolume driver.'),
  azureFile: pointer(13, own.azureFile, 'An Azure File share.'),
  vsphereVolume: pointer(14, plain.vsphereVolume, 'A vSphere virtual disk.'),
  quobyte: pointer(15, plain.quobyte, 'A Quobyte volume.'),
  azureDisk: pointer(16, plain.azureDisk, 'An Azure data disk.'),
  photonPersistentDisk: pointer(17, plain.photonPersistentDisk, 'A Photon persistent disk.'),
  portworxVolume: pointer(18, plain.portworxVolume, 'A Portworx volume.'),
  scaleIO: pointer(19, own.scaleIO, 'A ScaleIO volume.'),
  local: pointer(20, own.local, 'A disk, partition or directory of one node.'),
  storageos: pointer(21, own.storageos, 'A StorageOS volume.'),
  csi: pointer(22, own.csi, 'A volume of a CSI driver.'),
};
