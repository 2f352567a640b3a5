/** The kinds that the engine's own controllers talk about. */
import type { Crd } from '#engine/registry/crd/definition.ts';
import type { nodeStatus } from '#engine/registry/kinds/node-status.ts';
import type { podStatus } from '#engine/registry/kinds/pod/pod-status.ts';
import type { PodSpec } from '#engine/registry/kinds/shared/pod-spec.ts';
import type { taint } from '#engine/registry/kinds/shared/scheduling.ts';
import type { Condition } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string; conditions?: Condition[] };
}

export interface Pod extends KubeObject {
  spec: PodSpec;
  status?: Infer<typeof podStatus>;
}

export interface Node extends KubeObject {
  spec?: { taints?: Infer<typeof taint>[]; unschedulable?: boolean };
  status?: Infer<typeof nodeStatus>;
}

export const PODS: ResourceType<Pod> = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
export const NODES: ResourceType<Node> = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };

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
