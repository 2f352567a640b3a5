/** Documentation of volumes whose files come from API objects. */
import type { PackageDocs } from '#engine/openapi/type-docs/type-doc.ts';

const defaultMode = 'Default mode bits of created files.';
const mode = 'Mode bits of the file. Defaults to the defaultMode of the volume.';
const path = 'Relative path of the file.';
const optional = 'Whether the object or its keys may be missing.';
const items = ['Keys to project and the paths of their files. Defaults to all keys.', 'KeyToPath'] as const;
const files = ['Files to create.', 'DownwardAPIVolumeFile'] as const;

export const projectionDocs: PackageDocs = {
  ConfigMapVolumeSource: {
    '': 'A ConfigMap whose keys become files of the volume.',
    defaultMode,
    items,
    name: 'Name of the ConfigMap.',
    optional,
  },
  SecretVolumeSource: {
    '': 'A Secret whose keys become files of the volume.',
    defaultMode,
    items,
    optional,
    secretName: 'Name of the Secret.',
  },
  DownwardAPIVolumeSource: { '': 'Fields of the pod that become files of the volume.', defaultMode, items: files },
  ProjectedVolumeSource: {
    '': 'Several sources projected into one directory.',
    defaultMode,
    sources: ['Sources to project.', 'VolumeProjection'],
  },
  VolumeProjection: {
    '': 'A source of a projected volume. Exactly one member must be set.',
    clusterTrustBundle: ['ClusterTrustBundles to project.', 'ClusterTrustBundleProjection'],
    configMap: ['ConfigMap to project.', 'ConfigMapProjection'],
    downwardAPI: ['Fields of the pod to project.', 'DownwardAPIProjection'],
    secret: ['Secret to project.', 'SecretProjection'],
    serviceAccountToken: ['Token of the service account to project.', 'ServiceAccountTokenProjection'],
  },
  ClusterTrustBundleProjection: {
    '': 'ClusterTrustBundles projected as a file of PEM certificates.',
    labelSelector: ['Selects bundles of the signer. Requires signerName.', 'meta.LabelSelector'],
    name: 'Name of one ClusterTrustBundle. Mutually exclusive with signerName.',
    optional,
    path,
    signerName: 'Name of the signer whose bundles are projected. Mutually exclusive with name.',
  },
  ConfigMapProjection: {
    '': 'A ConfigMap whose keys become files of a projected volume.',
    items,
    name: 'Name of the ConfigMap.',
    optional,
  },
  SecretProjection: {
    '': 'A Secret whose keys become files of a projected volume.',
    items,
    name: 'Name of the Secret.',
    optional,
  },
  DownwardAPIProjection: { '': 'Fields of the pod that become files of a projected volume.', items: files },
  DownwardAPIVolumeFile: {
    '': 'A file that contains a field of the pod.',
    fieldRef: ['Selects a field of the pod.', 'ObjectFieldSelector'],
    mode,
    path,
    resourceFieldRef: ['Selects a resource of a container.', 'ResourceFieldSelector'],
  },
  ServiceAccountTokenProjection: {
    '': 'A token of the service account projected as a file.',
    audience: 'Intended audience of the token. Defaults to the API server.',
    expirationSeconds: 'Requested lifetime of the token. The token is rotated before it expires.',
    path,
  },
  KeyToPath: { '': 'Maps a key to a file.', key: 'Key to project.', mode, path },
};
