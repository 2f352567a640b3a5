/** Kinds that tests of several folders talk about. */
import type { ResourceType } from '#kube/meta.ts';

export const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};
