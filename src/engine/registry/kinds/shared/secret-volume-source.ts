/**
 * Volume sources that differ between pods and persistent volumes only in the reference to a secret: in the pod's
 * namespace or in any namespace.
 */
import { bool, int32, list, map, obj, str } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

export const secretVolumeSources = <R extends Schema>(secretRef: R) => ({
  cephfs: obj(
    {
      monitors: list(str(), { atomic: true }),
      path: str(),
      readOnly: bool(),
      secretFile: str(),
      secretRef,
      user: str(),
    },
    { required: ['monitors'] },
  ),
  cinder: obj(
    {
      fsType: str(),
      readOnly: bool(),
      secretRef,
      volumeID: str(),
    },
    { required: ['volumeID'] },
  ),
  flexVolume: obj(
    {
      driver: str(),
      fsType: str(),
      options: map(str()),
      readOnly: bool(),
      secretRef,
    },
    { required: ['driver'] },
  ),
  iscsi: obj(
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
      secretRef,
      targetPortal: str(),
    },
    { required: ['targetPortal', 'iqn', 'lun'] },
  ),
  rbd: obj(
    {
      fsType: str(),
      image: str(),
      keyring: str({ default: '/etc/ceph/keyring' }),
      monitors: list(str(), { atomic: true }),
      pool: str({ default: 'rbd' }),
      readOnly: bool(),
      secretRef,
      user: str({ default: 'admin' }),
    },
    { required: ['monitors', 'image'] },
  ),
  scaleIO: obj(
    {
      fsType: str({ default: 'xfs' }),
      gateway: str(),
      protectionDomain: str(),
      readOnly: bool(),
      secretRef,
      sslEnabled: bool(),
      storageMode: str({ default: 'ThinProvisioned' }),
      storagePool: str(),
      system: str(),
      volumeName: str(),
    },
    { required: ['gateway', 'system', 'secretRef'] },
  ),
});

/** Separate from the others, because a persistent volume has a different type of reference here. */
export const storageOsVolumeSource = <R extends Schema>(secretRef: R) =>
  obj({
    fsType: str(),
    readOnly: bool(),
    secretRef,
    volumeName: str(),
    volumeNamespace: str(),
  });
