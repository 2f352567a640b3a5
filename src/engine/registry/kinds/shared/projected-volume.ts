/** The schemas of volumes that are filled from API objects. */
import { objectFieldSelector, resourceFieldSelector } from '#engine/registry/kinds/shared/env.ts';
import { labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { bool, int32, int64, list, obj, str } from '#kube/schema-dsl.ts';

const keyToPath = obj(
  {
    key: str(),
    mode: int32(),
    path: str(),
  },
  { required: ['key', 'path'] },
);

const downwardAPIVolumeFile = obj(
  {
    fieldRef: objectFieldSelector,
    mode: int32(),
    path: str(),
    resourceFieldRef: resourceFieldSelector,
  },
  { required: ['path'] },
);

const clusterTrustBundleProjection = obj(
  {
    labelSelector,
    name: str(),
    optional: bool(),
    path: str(),
    signerName: str(),
  },
  { required: ['path'] },
);

/** Some or all keys of a ConfigMap or Secret. */
const keysProjection = obj({
  items: list(keyToPath, { atomic: true }),
  name: str({ default: '' }),
  optional: bool(),
});

const downwardAPIProjection = obj({
  items: list(downwardAPIVolumeFile, { atomic: true }),
});

const serviceAccountTokenProjection = obj(
  {
    audience: str(),
    expirationSeconds: int64({ default: 3600 }),
    path: str(),
  },
  { required: ['path'] },
);

const volumeProjection = obj({
  clusterTrustBundle: clusterTrustBundleProjection,
  configMap: keysProjection,
  downwardAPI: downwardAPIProjection,
  secret: keysProjection,
  serviceAccountToken: serviceAccountTokenProjection,
});

/** 0644: readable by all in the pod. */
const defaultMode = int32({ default: 420 });

export const projectedVolumeSources = {
  configMap: obj({ ...keysProjection.properties, defaultMode }),
  downwardAPI: obj({ ...downwardAPIProjection.properties, defaultMode }),
  projected: obj({ defaultMode, sources: list(volumeProjection, { atomic: true }) }),
  secret: obj({
    defaultMode,
    items: list(keyToPath, { atomic: true }),
    optional: bool(),
    secretName: str(),
  }),
};
