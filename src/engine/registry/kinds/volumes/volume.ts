/** A volume of a pod: a name and exactly one source. */
import { apiType, inlined, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { plainVolumeSources as plain } from '#engine/registry/kinds/volumes/plain-volume-source.ts';
import { podVolumeSources as own } from '#engine/registry/kinds/volumes/pod-volume-source.ts';
import { projectedVolumeSources as projected } from '#engine/registry/kinds/volumes/projected-volume.ts';
import { type Infer, str } from '#kube/schema-dsl.ts';

const sources = {
  hostPath: pointer(1, plain.hostPath, 'A file or directory of the node.'),
  emptyDir: pointer(2, own.emptyDir, "A temporary directory that shares the pod's lifetime."),
  gcePersistentDisk: pointer(3, plain.gcePersistentDisk, 'A Google Compute Engine persistent disk.'),
  awsElasticBlockStore: pointer(4, plain.awsElasticBlockStore, 'An AWS Elastic Block Store disk.'),
  gitRepo: pointer(5, own.gitRepo, 'A clone of a Git repository. Deprecated.'),
  secret: pointer(6, projected.secret, 'A Secret whose keys become files.'),
  nfs: pointer(7, plain.nfs, 'An NFS export.'),
  iscsi: pointer(8, own.iscsi, 'An iSCSI disk.'),
  glusterfs: pointer(9, own.glusterfs, 'A Gluster volume.'),
  persistentVolumeClaim: pointer(10, own.persistentVolumeClaim, 'A PersistentVolumeClaim in the same namespace.'),
  rbd: pointer(11, own.rbd, 'A Ceph RBD image.'),
  flexVolume: pointer(12, own.flexVolume, 'A volume of a FlexVolume driver.'),
  cinder: pointer(13, own.cinder, 'An OpenStack Cinder volume.'),
  cephfs: pointer(14, own.cephfs, 'A CephFS directory.'),
  flocker: pointer(15, plain.flocker, 'A Flocker dataset.'),
  downwardAPI: pointer(16, projected.downwardAPI, 'Fields of the pod that become files.'),
  fc: pointer(17, plain.fc, 'A Fibre Channel disk.'),
  azureFile: pointer(18, own.azureFile, 'An Azure File share.'),
  configMap: pointer(19, projected.configMap, 'A ConfigMap whose keys become files.'),
  vsphereVolume: pointer(20, plain.vsphereVolume, 'A vSphere virtual disk.'),
  quobyte: pointer(21, plain.quobyte, 'A Quobyte volume.'),
  azureDisk: pointer(22, plain.azureDisk, 'An Azure data disk.'),
  photonPersistentDisk: pointer(23, plain.photonPersistentDisk, 'A Photon persistent disk.'),
  projected: pointer(26, projected.projected, 'Several sources projected into one directory.'),
  portworxVolume: pointer(24, plain.portworxVolume, 'A Portworx volume.'),
  scaleIO: pointer(25, own.scaleIO, 'A ScaleIO volume.'),
  storageos: pointer(27, own.storageos, 'A StorageOS volume.'),
  csi: pointer(28, own.csi, 'An ephemeral volume of a CSI driver.'),
  ephemeral: pointer(29, own.ephemeral, 'A PersistentVolumeClaim that is created for the pod and deleted with it.'),
  image: pointer(30, own.image, 'The files of an OCI image.'),
};

export const VOLUME_SOURCES: readonly string[] = Object.keys(sources).sort();

export const podVolumeSchema = apiType('core.v1.Volume', 'A named volume of a pod. Exactly one source must be set.', {
  name: required(1, str(), 'Name of the volume. Must be unique in the pod.'),
  ...inlined(2, 'core.v1.VolumeSource', sources),
});

export type EnginePodVolume = Infer<typeof podVolumeSchema>;
