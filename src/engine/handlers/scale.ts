/** The scale subresource of custom kinds: an autoscaling/v1 Scale as a view of fields of the object. */
import { readPacedBody } from '#engine/handlers/pace.ts';
import { parseBody, parsePatch } from '#engine/body/decode-body.ts';
import { encodeJson, JSON_TYPE, mediaType } from '#engine/encoding/media-types.ts';
import { decodeEntry, prepareEntries, type Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { modifyObject, type ObjectView } from '#engine/handlers/write/modify.ts';
import { applierOf, parseConfig } from '#engine/handlers/apply.ts';
import { APPLY_PATCH, applyPatch, assertPatchType } from '#engine/handlers/patch.ts';
import { applyConfiguration } from '#engine/managed-fields/apply-configuration.ts';
import { fieldScope } from '#engine/managed-fields/field-scope.ts';
import { writeOptions, type WriteRequestOptions } from '#engine/handlers/options.ts';
import type { ScaleSubresource } from '#engine/registry/resource.ts';
import { splitFieldPath, valueAt } from '#engine/registry/scale-rules.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { badRequest, conflict, invalid, notFound } from '#kube/api-error.ts';
import { requiredValue } from '#kube/field-error.ts';
import { deepClone } from '#kube/deep.ts';
import { apiVersionOf, isRecord, type KubeObject } from '#kube/meta.ts';

const SCALE = { group: 'autoscaling', version: 'v1', kind: 'Scale' };

export async function getScale(call: Call): Promise<ApiResponse> {
  return respondScale(call, await current(call));
}

export async function updateScale(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'UpdateOptions');
  const body = parseBody(await readPacedBody(call), call.request.contentType, { kind: 'Scale', builtIn: true });
  return change(call, options, (object) => withScale(call, object, body));
}

export async function patchScale(call: Call): Promise<ApiResponse> {
  const type = mediaType(call.request.contentType);
  assertPatchType(call, type);
  if (type === APPLY_PATCH) return applyScale(call);
  const options = writeOptions(call.request.query, 'PatchOptions');
  const patch = parsePatch(await readPacedBody(call));
  return change(call, options, (object) =>
    withScale(call, object, applyPatch(call, type, scaleOf(call, object), patch)),
  );
}

/** Applies a Scale: its manager then owns the replicas field of the object. */
async function applyScale(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'PatchOptions', true);
  const config = parseConfig(await readPacedBody(call));
  const { resource } = call.served;
  const { specReplicasPath } = resource.scale as ScaleSubresource;
  const wanted = (object: KubeObject) => {
    // Checked like any other Scale, then applied to the object.
    const scaled = withScale(call, deepClone(object), config);
    const objectConfig: KubeObject = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: {} };
    write(objectConfig, specReplicasPath, valueAt(scaled, specReplicasPath).value as number);
    const applied = applyConfiguration(
      object,
      objectConfig,
      applierOf(call, options),
      fieldScope(call.served, 'scale'),
    );
    const { resourceVersion } = scaled.metadata;
    return { ...applied, metadata: { ...applied.metadata, resourceVersion } };
  };
  return change(call, { ...options, owned: true }, wanted);
}

async function change(
  call: Call,
  options: WriteRequestOptions & { readonly owned?: boolean },
  wanted: (object: KubeObject) => KubeObject,
): Promise<ApiResponse> {
  const view: ObjectView = {
    kind: SCALE,
    of: (object) => scaleOf(call, object),
    into: (object, scale) => withScale(call, object, scale),
  };
  const { entry, object } = await modifyObject(call, { ...options, needsRevision: false, change: wanted, view });
  if (entry === undefined) return respondScale(call, object);
  await prepareEntries(call, [entry]);
  return respondScale(call, decodeEntry(entry, call.served.resource));
}

async function current(call: Call): Promise<KubeObject> {
  const { resource } = call.served;
  const { namespace, name } = call.route;
  const entry = call.store.get(resource.collection, entryId(resource, namespace, name));
  if (entry === undefined) throw notFound(resource, name);
  await prepareEntries(call, [entry]);
  return decodeEntry(entry, resource);
}

function respondScale(call: Call, object: KubeObject): ApiResponse {
  return { status: 200, contentType: JSON_TYPE, body: encodeJson(scaleOf(call, object)) };
}

function scaleOf({ served }: Call, object: KubeObject): KubeObject {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = served.resource.scale as ScaleSubresource;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector = labelSelectorPath === undefined ? undefined : valueAt(object, labelSelectorPath).value;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: count(valueAt(object, specReplicasPath).value) },
    status: {
      replicas: count(valueAt(object, statusReplicasPath).value) ?? 0,
      ...(typeof selector === 'string' && selector !== '' ? { selector } : {}),
    },
  };
}

/** Returns the object with the desired replicas, and with the revision that the Scale requires. */
function withScale(call: Call, object: KubeObject, scale: unknown): KubeObject {
  if (!isRecord(scale) || scale['kind'] !== 'Scale' || scale['apiVersion'] !== 'autoscaling/v1')
    throw badRequest('the object provided is not a Scale of autoscaling/v1');
  const { metadata, spec } = scale as {
    metadata?: { name?: string; namespace?: string; uid?: string; resourceVersion?: string };
    spec?: { replicas?: unknown };
  };
  const { resource } = call.served;
  const { name, namespace } = call.route;
  if (metadata?.name && metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
  if (metadata?.namespace && metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (metadata?.uid && metadata.uid !== object.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${object.metadata.uid}`;
    throw conflict(resource, name, why);
  }
  if (typeof spec?.replicas !== 'number' || !Number.isInteger(spec.replicas)) {
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, call.route.name, [
      requiredValue('spec.replicas', 'must be an integer'),
    ]);
  }
  write(object, (resource.scale as ScaleSubresource).specReplicasPath, spec.replicas);
  if (metadata?.resourceVersion) object.metadata.resourceVersion = metadata.resourceVersion;
  return object;
}

function write(object: Record<string, unknown>, path: string, value: number): void {
  const names = splitFieldPath(path);
  const last = names.pop()!;
  let at = object;
  for (const field of names) {
    if (!Object.hasOwn(at, field) || !isRecord(at[field])) at[field] = {};
    at = at[field] as Record<string, unknown>;
  }
  at[last] = value;
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
