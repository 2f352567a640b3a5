/** Kinds that are only posted to a subresource (Binding, Eviction, TokenRequest): their shape and admission. */
import { readPacedBody } from '#engine/handlers/pace.ts';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import type { GroupVersionKind } from '#engine/registry/resource.ts';
import { parseBody } from '#engine/body/decode-body.ts';
import { admissionAttributes } from '#engine/handlers/write/admit.ts';
import type { Call } from '#engine/handlers/call.ts';
import { asObject, duplicateKeyRecorder } from '#engine/handlers/write/read-object.ts';
import { shapeObject } from '#engine/handlers/write/shape.ts';
import { writeOptions } from '#engine/handlers/options.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { Registry, type Served } from '#engine/registry/registry.ts';
import { apiVersionOf, isRecord, type KubeObject } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

interface PostedKind {
  readonly kind: GroupVersionKind;
  /** Not served by itself; defines the shape of the posted object. */
  readonly served: Served;
  /** Older versions of the same form that clients still send: `policy/v1beta1`. */
  readonly alsoFrom: readonly string[];
}

export function postedKind(kind: GroupVersionKind, schema: Schema, alsoFrom: readonly string[] = []): PostedKind {
  const plural = `${kind.kind.toLowerCase()}s`;
  const resource = defineKind({ ...kind, plural, namespaced: true, verbs: ['create'], columns: [], schema });
  return { kind, served: new Registry([resource]).find(kind.group, kind.version, plural)!, alsoFrom };
}

interface PostedObject {
  readonly object: KubeObject;
  /** The call for responding in the posted kind. */
  readonly call: Call;
  readonly dryRun: boolean;
  readonly warnings: readonly string[];
  /** To be validated, and guarded immediately before the action. */
  readonly attributes: AdmissionAttributes;
}

/** Reads and shapes the posted object, and runs mutating admission. */
export async function readPosted(call: Call, { kind, served, alsoFrom }: PostedKind): Promise<PostedObject> {
  const { dryRun, sent, fieldValidation } = writeOptions(call.request.query, 'CreateOptions');
  const own: Call = { ...call, served };
  const value = parseBody(
    await readPacedBody(call),
    call.request.contentType,
    served.resource,
    duplicateKeyRecorder(call),
  );
  if (isRecord(value) && alsoFrom.includes(String(value['apiVersion']))) value['apiVersion'] = apiVersionOf(kind);
  const object = asObject(own, value);
  const warnings = shapeObject(own, object, fieldValidation);
  const attributes = admissionAttributes(call, {
    operation: 'CREATE',
    name: call.route.name,
    object,
    oldObject: undefined,
    dryRun,
    options: sent,
    kind,
  });
  await call.admission.mutate(attributes);
  shapeObject(own, object, 'Ignore');
  return { object, call: own, dryRun, warnings, attributes };
}
