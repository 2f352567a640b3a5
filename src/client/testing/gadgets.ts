/** A kind for tests and a builder of its objects. */
import type { KubeObject, ObjectMeta, ResourceType } from '#kube/meta.ts';

export interface Gadget extends KubeObject {
  spec?: { size?: number; color?: string };
  status?: Record<string, unknown>;
}

export const GADGETS: ResourceType<Gadget> = {
  group: 'test.local',
  version: 'v1',
  kind: 'Gadget',
  plural: 'gadgets',
  namespaced: true,
};

export function aGadget(
  name: string,
  overrides: { spec?: Gadget['spec']; metadata?: Partial<ObjectMeta> } = {},
): Gadget {
  return {
    apiVersion: 'test.local/v1',
    kind: 'Gadget',
    metadata: { namespace: 'default', name, ...overrides.metadata },
    spec: { size: 1, ...overrides.spec },
  };
}
