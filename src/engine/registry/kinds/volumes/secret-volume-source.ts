/**
 * Volume sources that differ between pods and persistent volumes only in the reference to a secret: in the pod's
 * namespace or in any namespace.
 */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { bool, int32, list, map, str } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

type Suffix = 'VolumeSource' | 'PersistentVolumeSource';

export const secretVolumeSources = <R extends Schema>(suffix: Suffix, secretRef: R) => ({
  cephfs: apiType(`core.v1.CephFS${suffix}`, 'A CephFS directory.', {
    monitors: required(1, list(str(), { atomic: true }), 'Addresses of the Ceph monitors.'),
    path: optional(2, str(), 'Directory of the file system to mount. Defaults to /.'),
    user: optional(3, str(), 'RADOS user name.'),
    secretFile: optional(4, str(), 'Path of the key ring file.'),
    secretRef: pointer(5, secretRef, 'Secret with credentials.'),
    readOnly: optional(6, bool(), 'Whether the volume is read-only.'),
  }),
  cinder: apiType(`core.v1.Cinder${suffix}`, 'An OpenStack Cinder volume.', {
    volumeID: required(1, str(), 'ID of the volume.'),
    fsType: optional(2, str(), 'File system type of the volume.'),
    readOnly: optional(3, bool(), 'Whether the volume is read-only.'),
    secretRef: pointer(4, secretRef, 'Secret with credentials.'),
  }),
  flexVolume: apiType(`core.v1.Flex${suffix}`, 'A volume of a FlexVolume driver.', {
    driver: required(1, str(), 'Name of the driver.'),
    fsType: optional(2, str(), 'File system type of the volume.'),
    secretRef: pointer(3, secretRef, 'Secret with credentials.'),
    readOnly: optional(4, bool(), 'Whether the volume is read-only.'),
    options: optional(5, map(str()), 'Options for the driver.'),
  }),
  iscsi: apiType(`core.v1.ISCSI${suffix}`, 'An iSCSI disk.', {
    targetPortal: required(1, str(), 'Portal of the target, as an address with an optional port.'),
    iqn: required(2, str(), 'Qualified name of the target.'),
    lun: required(3, int32(), 'Logical unit number of the target.'),
    iscsiInterface: optional(4, str({ default: 'default' }), 'Name of the iSCSI interface.'),
    fsType: optional(5, str(), 'File system type of the volume.'),
    readOnly: optional(6, bool(), 'Whether the volume is read-only.'),
    portals: optional(7, list(str(), { atomic: true }), 'Additional portals of the target.'),
    chapAuthDiscovery: optional(8, bool(), 'Whether discovery uses CHAP authentication.'),
    chapAuthSession: optional(11, bool(), 'Whether the session uses CHAP authentication.'),
    secretRef: pointer(10, secretRef, 'Secret with credentials.'),
    initiatorName: pointer(12, str(), 'iSCSI initiator name.'),
  }),
  rbd: apiType(`core.v1.RBD${suffix}`, 'A Ceph RBD image.', {
    monitors: required(1, list(str(), { atomic: true }), 'Addresses of the Ceph monitors.'),
    image: required(2, str(), 'Name of the RBD image.'),
    fsType: optional(3, str(), 'File system type of the volume.'),
    pool: optional(4, str({ default: 'rbd' }), 'Name of the RADOS pool.'),
    user: optional(5, str({ default: 'admin' }), 'RADOS user name.'),
    keyring: optional(6, str({ default: '/etc/ceph/keyring' }), 'Path of the key ring file.'),
    secretRef: pointer(7, secretRef, 'Secret with credentials.'),
    readOnly: optional(8, bool(), 'Whether the volume is read-only.'),
  }),
  scaleIO: apiType(`core.v1.ScaleIO${suffix}`, 'A ScaleIO volume.', {
    gateway: required(1, str(), 'Address of the ScaleIO API gateway.'),
    system: required(2, str(), 'Name of the storage system.'),
    secretRef: required(3, secretRef, 'Secret with credentials.', { pointer: true }),
    sslEnabled: optional(4, bool(), 'Whether to use TLS with the gateway.'),
    protectionDomain: optional(5, str(), 'Name of the protection domain.'),
    storagePool: optional(6, str(), 'Name of the storage pool.'),
    storageMode: optional(7, str({ default: 'ThinProvisioned' }), 'Storage mode: ThickProvisioned or ThinProvisioned.'),
    volumeName: optional(8, str(), 'Name of the volume.'),
    fsType: optional(9, str({ default: 'xfs' }), 'File system type of the volume.'),
    readOnly: optional(10, bool(), 'Whether the volume is read-only.'),
  }),
});

/** Separate from the others, because a persistent volume has a different type of reference here. */
export const storageOsVolumeSource = <R extends Schema>(suffix: Suffix, secretRef: R) =>
  apiType(`core.v1.StorageOS${suffix}`, 'A StorageOS volume.', {
    volumeName: optional(1, str(), 'Name of the volume.'),
    volumeNamespace: optional(2, str(), 'StorageOS namespace of the volume.'),
    fsType: optional(3, str(), 'File system type of the volume.'),
    readOnly: optional(4, bool(), 'Whether the volume is read-only.'),
    secretRef: pointer(5, secretRef, 'Secret with credentials.'),
  });
