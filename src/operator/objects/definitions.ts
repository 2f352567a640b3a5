/** CustomResourceDefinitions of our kinds, and of third-party kinds that we need. */
import { buildCrd } from '#api/custom-kinds/custom-kind.ts';
import { customKinds } from '#api/custom-kinds/all-kinds.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '#kube/core-kinds.ts';
import { volumeSnapshotDefinitions } from '#operator/objects/volume-snapshot-definitions.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '#api/network/network-attachment-definition.ts';
import { obj, str } from '#kube/schema-dsl.ts';
import { STORAGE_PROFILES, storageProfileSpec, storageProfileStatus } from '#api/storage/storage-profile.ts';
import { foreignDefinition } from '#operator/objects/foreign-definition.ts';

const own: readonly DesiredObject[] = customKinds.map((kind) => {
  const { metadata, spec } = buildCrd(kind);
  return desiredObject(CUSTOM_RESOURCE_DEFINITIONS, { ...metadata, name: metadata.name ?? '' }, { spec });
});

/**
 * The definition of CDI's StorageProfiles, for clusters without CDI. We create the profiles of our own classes; the
 * administrator creates those of other classes.
 */
export const storageProfileDefinition = foreignDefinition({
  type: STORAGE_PROFILES,
  shortNames: [],
  description: 'The capabilities of the StorageClass of the same name.',
  properties: { spec: storageProfileSpec, status: storageProfileStatus },
  required: ['spec'],
  columns: [],
});

/**
 * The definition of NetworkAttachmentDefinitions, for clusters without Multus. Names and fields are those of the Network
 * Plumbing Working Group.
 */
export const networkAttachmentDefinition = foreignDefinition({
  type: NETWORK_ATTACHMENT_DEFINITIONS,
  shortNames: ['net-attach-def'],
  singular: 'network-attachment-definition',
  description:
    'A secondary network of VMs: a CNI configuration. Only cluster administrators should write it, because it names devices of the nodes.',
  properties: {
    spec: obj({
      config: str({
        description:
          'A CNI configuration or configuration list, as JSON. Its plugins must be installed on the nodes, in /opt/cni/bin or /usr/lib/cni.',
      }),
    }),
  },
  required: [],
  columns: [{ name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }],
});

export const definitions: readonly DesiredObject[] = [
  ...own,
  ...volumeSnapshotDefinitions,
  storageProfileDefinition,
  networkAttachmentDefinition,
];
