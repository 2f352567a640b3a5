/** Kinds that tests of several folders talk about. */
import type { ResourceType } from '#kube/meta.ts';

/** The ConfigMap that a controller writes into every namespace. */
export const ROOT_CA = 'kube-root-ca.crt';

export const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};
