/** Volumes that are filled from API objects. */
import { objectFieldSelector, resourceFieldSelector } from '#engine/registry/kinds/shared/env.ts';
import { labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { bool, int32, int64, list, map, obj, str } from '#kube/schema-dsl.ts';

export const keyToPath = obj(
  {
    key: str(),
    mode: int32(),
    path: str(),
    user: int64(),
  },
  { required: ['key', 'path'] },
);

export const downwardAPIVolumeFile = obj(
  {
    fieldRef: objectFieldSelector,
    mode: int32(),
    path: str(),
    resourceFieldRef: resourceFieldSelector,
    user: int64(),
  },
  { required: ['path'] },
);

export const configMapVolumeSource = obj({
  defaultMode: int32({ default: 420 }),
  defaultUser: int64(),
  items: list(keyToPath, { atomic: true }),
  name: str({ default: '' }),
  optional: bool(),
});

export const secretVolumeSource = obj({
  defaultMode: int32({ default: 420 }),
  defaultUser: int64(),
  items: list(keyToPath, { atomic: true }),
  optional: bool(),
  secretName: str(),
});

export const downwardAPIVolumeSource = obj({
  defaultMode: int32({ default: 420 }),
  defaultUser: int64(),
  items: list(downwardAPIVolumeFile, { atomic: true }),
});

export const clusterTrustBundleProjection = obj(
  {
    labelSelector,
    name: str(),
    optional: bool(),
    path: str(),
    signerName: str(),
    user: int64(),
  },
  { required: ['path'] },
);

export const configMapProjection = obj({
  items: list(keyToPath, { atomic: true }),
  name: str({ default: '' }),
  optional: bool(),
});

export const downwardAPIProjection = obj({
  items: list(downwardAPIVolumeFile, { atomic: true }),
});

export const podCertificateProjection = obj(
  {
    certificateChainPath: str(),
    credentialBundlePath: str(),
    keyPath: str(),
    keyType: str(),
    maxExpirationSeconds: int32(),
    signerName: str(),
    user: int64(),
    userAnnotations: map(str()),
  },
  { required: ['signerName', 'keyType'] },
);

export const secretProjection = obj({
  items: list(keyToPath, { atomic: true }),
  name: str({ default: '' }),
  optional: bool(),
});

export const serviceAccountTokenProjection = obj(
  {
    audience: str(),
    expirationSeconds: int64({ default: 3600 }),
    path: str(),
    user: int64(),
  },
  { required: ['path'] },
);

export const volumeProjection = obj({
  clusterTrustBundle: clusterTrustBundleProjection,
  configMap: configMapProjection,
  downwardAPI: downwardAPIProjection,
  podCertificate: podCertificateProjection,
  secret: secretProjection,
  serviceAccountToken: serviceAccountTokenProjection,
});

export const projectedVolumeSource = obj({
  defaultMode: int32({ default: 420 }),
  defaultUser: int64(),
  sources: list(volumeProjection, { atomic: true }),
});
