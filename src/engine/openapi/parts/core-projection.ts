/** The words for volumes whose files come from objects. */
import type { Parts } from '#engine/openapi/parts/part.ts';

const defaultMode = 'The mode of the files, unless they have their own.';
const optional = 'Whether it may be missing.';
const items = ['Which keys, and as which files; by default all.', 'KeyToPath'] as const;

export const projectionParts: Parts = {
  ConfigMapVolumeSource: { '': 'The keys of a ConfigMap as files.', defaultMode, items, name: 'Its name.', optional },
  SecretVolumeSource: { '': 'The keys of a Secret as files.', defaultMode, items, optional, secretName: 'Its name.' },
  DownwardAPIVolumeSource: {
    '': 'Fields of the pod as files.',
    defaultMode,
    items: ['The files.', 'DownwardAPIVolumeFile'],
  },
  ProjectedVolumeSource: {
    '': 'Several sources in one directory.',
    defaultMode,
    sources: ['The sources.', 'VolumeProjection'],
  },
  VolumeProjection: {
    '': 'A source of files; one of these.',
    clusterTrustBundle: ['Certificates to trust.', 'ClusterTrustBundleProjection'],
    configMap: ['A ConfigMap.', 'ConfigMapProjection'],
    downwardAPI: ['Fields of the pod.', 'DownwardAPIProjection'],
    secret: ['A Secret.', 'SecretProjection'],
    serviceAccountToken: ['A token of the service account.', 'ServiceAccountTokenProjection'],
  },
  ClusterTrustBundleProjection: {
    '': 'Certificates to trust.',
    labelSelector: ['Which bundles of a signer.', 'meta.LabelSelector'],
    name: 'One bundle.',
    optional,
    path: 'The file.',
    signerName: 'All bundles of this signer.',
  },
  ConfigMapProjection: { '': 'The keys of a ConfigMap as files.', items, name: 'Its name.', optional },
  SecretProjection: { '': 'The keys of a Secret as files.', items, name: 'Its name.', optional },
  DownwardAPIProjection: { '': 'Fields of the pod as files.', items: ['The files.', 'DownwardAPIVolumeFile'] },
  DownwardAPIVolumeFile: {
    '': 'A file with a field of the pod.',
    fieldRef: ['A field of the pod.', 'ObjectFieldSelector'],
    mode: 'The mode of the file.',
    path: 'The file.',
    resourceFieldRef: ['A resource of a container.', 'ResourceFieldSelector'],
  },
  ServiceAccountTokenProjection: {
    '': 'A token of the service account.',
    audience: 'For whom it is; by default the API.',
    expirationSeconds: 'How long it is valid; it is renewed in time.',
    path: 'The file.',
  },
  KeyToPath: { '': 'A key as a file.', key: 'The key.', mode: 'The mode of the file.', path: 'The file.' },
};
