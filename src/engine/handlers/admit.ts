/**
 * What the admission chain is told about a request; the handlers decide when it is asked. They wait only where a step
 * really waits: a turn in between would let other writes of the same object come first.
 */
import type { AdmissionAttributes, GroupVersionKind, Operation } from '#engine/admission/admission.ts';
import type { Call } from '#engine/handlers/call.ts';
import { shapeObject } from '#engine/handlers/shape.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface Asked {
  readonly operation: Operation;
  readonly name: string;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly dryRun: boolean;
  /** CreateOptions and the like, as sent. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Of the object, where that is not the resource's own. */
  readonly kind?: GroupVersionKind | undefined;
  /** Where a collection across namespaces was asked for, the object knows better than the path. */
  readonly namespace?: string;
}

export function admissionAttributes(call: Call, asked: Asked): AdmissionAttributes {
  const { request, route, served, notes } = call;
  const { resource } = served;
  return {
    ...asked,
    resource,
    kind: asked.kind ?? resource,
    subresource: route.subresource,
    namespace: asked.namespace ?? route.namespace,
    user: request.user,
    notes,
    get signal() {
      return request.signal;
    },
    reshape(object) {
      // What a step added beyond the kind is no fault of the client: it is dropped without a word.
      if (asked.kind === undefined) shapeObject(call, object, 'Ignore');
    },
  };
}
