/**
 * What the admission chain is told about a request; the handlers decide when it is asked. They wait only where a step
 * really waits: a turn in between would let other writes of the same object come first.
 */
import type { AdmissionAttributes, AdmissionNotes, GroupVersionKind, Operation } from '#engine/admission/admission.ts';
import type { Call } from '#engine/handlers/call.ts';
import { shapeObject } from '#engine/handlers/shape.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { UserInfo } from '#engine/request.ts';
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
  return new CallAttributes(call, asked);
}

/** A class, because every write makes two of these: a literal with a getter and a spread takes ten times as long. */
class CallAttributes implements AdmissionAttributes {
  readonly operation: Operation;
  readonly resource: Resource;
  readonly kind: GroupVersionKind;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  readonly options: Readonly<Record<string, unknown>>;
  readonly notes: AdmissionNotes;
  readonly #call: Call;
  /** The object is the resource's own. */
  readonly #own: boolean;

  constructor(call: Call, asked: Asked) {
    const { request, route, served, notes } = call;
    const { resource } = served;
    this.operation = asked.operation;
    this.resource = resource;
    this.kind = asked.kind ?? resource;
    this.subresource = route.subresource;
    this.namespace = asked.namespace ?? route.namespace;
    this.name = asked.name;
    this.object = asked.object;
    this.oldObject = asked.oldObject;
    this.user = request.user;
    this.dryRun = asked.dryRun;
    this.options = asked.options;
    this.notes = notes;
    this.#call = call;
    this.#own = asked.kind === undefined;
  }

  /** Made by the request when it is first asked for: most steps wait for nobody. */
  get signal(): AbortSignal {
    return this.#call.request.signal;
  }

  reshape(object: KubeObject): void {
    // What a step added beyond the kind is no fault of the client: it is dropped without a word.
    if (this.#own) shapeObject(this.#call, object, 'Ignore');
  }
}
