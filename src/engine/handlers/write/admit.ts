/**
 * Builds the admission attributes of a request; the handlers decide when to run the admission chain. They await only
 * steps that return a promise: an extra turn would let other writes of the same object overtake.
 */
import type { AdmissionAttributes, AdmissionNotes, AdmissionOperation } from '#engine/admission/admission.ts';
import type { GroupVersionKind, Resource } from '#engine/registry/resource.ts';
import type { Call } from '#engine/handlers/call.ts';
import { shapeObject } from '#engine/handlers/write/shape.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { KubeObject } from '#kube/meta.ts';

interface AdmissionInput {
  readonly operation: AdmissionOperation;
  readonly name: string;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly dryRun: boolean;
  /** CreateOptions and the like, as sent. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Kind of the object, if it is not the resource's own. */
  readonly kind?: GroupVersionKind | undefined;
  /** Set for a collection across namespaces, where the object's namespace differs from the path's. */
  readonly namespace?: string;
}

export function admissionAttributes(call: Call, input: AdmissionInput): AdmissionAttributes {
  return new CallAttributes(call, input);
}

/** A class, because every write creates two of these: a literal with a getter and a spread takes ten times as long. */
class CallAttributes implements AdmissionAttributes {
  readonly operation: AdmissionOperation;
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
  /** True if the object is of the resource's own kind. */
  readonly #own: boolean;

  constructor(call: Call, input: AdmissionInput) {
    const { request, route, served, notes } = call;
    const { resource } = served;
    this.operation = input.operation;
    this.resource = resource;
    this.kind = input.kind ?? resource;
    this.subresource = route.subresource;
    this.namespace = input.namespace ?? route.namespace;
    this.name = input.name;
    this.object = input.object;
    this.oldObject = input.oldObject;
    this.user = request.user;
    this.dryRun = input.dryRun;
    this.options = input.options;
    this.notes = notes;
    this.#call = call;
    this.#own = input.kind === undefined;
  }

  /** Created by the request on first use: most steps wait for nothing. */
  get signal(): AbortSignal {
    return this.#call.request.signal;
  }

  reshape(object: KubeObject): void {
    // Unknown fields that a step added are not the client's error, so they are dropped silently.
    if (this.#own) shapeObject(this.#call, object, 'Ignore');
  }
}
