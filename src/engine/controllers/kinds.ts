/** The kinds that the engine's own controllers talk about. */
import type { Crd } from '#engine/registry/crd/definition.ts';
import type { Condition } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string; conditions?: Condition[] };
}

export const NAMESPACES: ResourceType<Namespace> = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};

export const CUSTOM_RESOURCE_DEFINITIONS: ResourceType<Crd> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};
