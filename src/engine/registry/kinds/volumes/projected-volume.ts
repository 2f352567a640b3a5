/** The schemas of volumes that are filled from API objects. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { objectFieldSelector, resourceFieldSelector } from '#engine/registry/kinds/pod-spec/env.ts';
import { labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { inlinedReference } from '#engine/registry/kinds/core/references.ts';
import { bool, int32, int64, list, str } from '#kube/schema-dsl.ts';

const MAY_BE_MISSING = 'Whether the object or its keys may be missing.';

const keyToPath = apiType('core.v1.KeyToPath', 'Maps a key to a file.', {
  key: required(1, str(), 'Key to project.'),
  path: required(2, str(), 'Relative path of the file.'),
  mode: pointer(3, int32(), 'Mode bits of the file. Defaults to the defaultMode of the volume.'),
});

const downwardAPIVolumeFile = apiType('core.v1.DownwardAPIVolumeFile', 'A file that contains a field of the pod.', {
  path: required(1, str(), 'Relative path of the file.'),
  fieldRef: pointer(2, objectFieldSelector, 'Selects a field of the pod.'),
  resourceFieldRef: pointer(3, resourceFieldSelector, 'Selects a resource of a container.'),
  mode: pointer(4, int32(), 'Mode bits of the file. Defaults to the defaultMode of the volume.'),
});

const clusterTrustBundleProjection = apiType(
  'core.v1.ClusterTrustBundleProjection',
  'ClusterTrustBundles projected as a file of PEM certificates.',
  {
    name: pointer(1, str(), 'Name of one ClusterTrustBundle. Mutually exclusive with signerName.'),
    signerName: pointer(2, str(), 'Name of the signer whose bundles are projected. Mutually exclusive with name.'),
    labelSelector: pointer(3, labelSelector, 'Selects bundles of the signer. Requires signerName.'),
    optional: pointer(5, bool(), MAY_BE_MISSING),
    path: required(4, str(), 'Relative path of the file.'),
  },
);

const items = optional(
  2,
  list(keyToPath, { atomic: true }),
  'Keys to project and the paths of their files. Defaults to all keys.',
);

/** Some or all keys of a ConfigMap or Secret. */
const keysProjection = (kind: 'ConfigMap' | 'Secret') =>
  apiType(`core.v1.${kind}Projection`, `A ${kind} whose keys become files of a projected volume.`, {
    ...inlinedReference(kind),
    items,
    optional: pointer(4, bool(), MAY_BE_MISSING),
  });

const files = optional(1, list(downwardAPIVolumeFile, { atomic: true }), 'Files to create.');

const downwardAPIProjection = apiType(
  'core.v1.DownwardAPIProjection',
  'Fields of the pod that become files of a projected volume.',
  { items: files },
);

const serviceAccountTokenProjection = apiType(
  'core.v1.ServiceAccountTokenProjection',
  'A token of the service account projected as a file.',
  {
    audience: optional(1, str(), 'Intended audience of the token. Defaults to the API server.'),
    expirationSeconds: pointer(
      2,
      int64({ default: 3600 }),
      'Requested lifetime of the token. The token is rotated before it expires.',
    ),
    path: required(3, str(), 'Relative path of the file.'),
  },
);

const volumeProjection = apiType(
  'core.v1.VolumeProjection',
  'A source of a projected volume. Exactly one member must be set.',
  {
    secret: pointer(1, keysProjection('Secret'), 'Secret to project.'),
    downwardAPI: pointer(2, downwardAPIProjection, 'Fields of the pod to project.'),
    configMap: pointer(3, keysProjection('ConfigMap'), 'ConfigMap to project.'),
    serviceAccountToken: pointer(4, serviceAccountTokenProjection, 'Token of the service account to project.'),
    clusterTrustBundle: pointer(5, clusterTrustBundleProjection, 'ClusterTrustBundles to project.'),
  },
);

/** 0644: readable by all in the pod. */
const READABLE = 420;

const defaultMode = (number: number) =>
  pointer(number, int32({ default: READABLE }), 'Default mode bits of created files.');

export const projectedVolumeSources = {
  configMap: apiType('core.v1.ConfigMapVolumeSource', 'A ConfigMap whose keys become files of the volume.', {
    ...inlinedReference('ConfigMap'),
    items,
    defaultMode: defaultMode(3),
    optional: pointer(4, bool(), MAY_BE_MISSING),
  }),
  downwardAPI: apiType('core.v1.DownwardAPIVolumeSource', 'Fields of the pod that become files of the volume.', {
    items: files,
    defaultMode: defaultMode(2),
  }),
  projected: apiType('core.v1.ProjectedVolumeSource', 'Several sources projected into one directory.', {
    sources: optional(1, list(volumeProjection, { atomic: true }), 'Sources to project.', { omitEmpty: false }),
    defaultMode: defaultMode(2),
  }),
  secret: apiType('core.v1.SecretVolumeSource', 'A Secret whose keys become files of the volume.', {
    secretName: optional(1, str(), 'Name of the Secret.'),
    items,
    defaultMode: defaultMode(3),
    optional: pointer(4, bool(), MAY_BE_MISSING),
  }),
};
