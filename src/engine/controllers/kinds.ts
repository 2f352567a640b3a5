/**
 * Built-in kinds with the types of the engine's own schemas. They are more complete than those of kube/core-kinds.ts,
 * which declare only the fields that clients use.
 */
import type { Crd } from '#engine/registry/crd/definition.ts';
import type { nodeStatusSchema } from '#engine/registry/kinds/core/node-status.ts';
import type { podStatusSchema } from '#engine/registry/kinds/pod/pod-status.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import type { taint } from '#engine/registry/kinds/pod-spec/scheduling.ts';
import type { Condition } from '#kube/conditions.ts';
import { type KubeObject, resourceAs } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';
import { PODS, NODES, NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS } from '#kube/core-kinds.ts';

export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string; conditions?: Condition[] };
}

/** A Pod with every field of the engine's schema. */
export interface EnginePod extends KubeObject {
  spec: EnginePodSpec;
  status?: Infer<typeof podStatusSchema>;
}

export interface EngineNode extends KubeObject {
  spec?: { taints?: Infer<typeof taint>[]; unschedulable?: boolean };
  status?: Infer<typeof nodeStatusSchema>;
}

export const ENGINE_PODS = resourceAs<EnginePod>(PODS);
export const ENGINE_NODES = resourceAs<EngineNode>(NODES);

export const ENGINE_NAMESPACES = resourceAs<Namespace>(NAMESPACES);

export const ENGINE_CRDS = resourceAs<Crd>(CUSTOM_RESOURCE_DEFINITIONS);
