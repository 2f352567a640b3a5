/** Reads the object in a request's body and checks it against the kind and path of the request. */
import { readPacedBody } from '#engine/handlers/pace.ts';
import { parseBody, type OnDuplicates } from '#engine/body/decode-body.ts';
import type { Call } from '#engine/handlers/call.ts';
import { type ApiError, badRequest } from '#kube/api-error.ts';
import { apiVersionOf, isRecord, type KubeObject } from '#kube/meta.ts';

export async function readRequestObject(call: Call): Promise<KubeObject> {
  const { resource } = call.served;
  const bytes = await readPacedBody(call);
  const value = parseBody(bytes, call.request.contentType, resource, duplicateKeyRecorder(call));
  return asObject(call, value);
}

/** Returns a handler for duplicate keys, or undefined if the client wants no report. */
export function duplicateKeyRecorder({ request: { query }, notes }: Call): OnDuplicates | undefined {
  if (query.size > 0 && query.get('fieldValidation') === 'Ignore') return undefined;
  return (duplicates) => {
    notes.duplicates = duplicates;
  };
}

/** Checks what every object must have. Also checks the result of a patch, with different messages. */
export function asObject(
  call: Call,
  value: unknown,
  refuse: (why: string) => ApiError = (why) => undecodable(call, why),
): KubeObject {
  const { resource } = call.served;
  if (!isRecord(value) || typeof value['kind'] !== 'string' || value['kind'] === '') {
    throw badRequest(`Object 'Kind' is missing in '${excerpt(value)}'`);
  }
  if (typeof value['apiVersion'] !== 'string' || value['apiVersion'] === '') {
    throw badRequest(`Object 'apiVersion' is missing in '${excerpt(value)}'`);
  }
  const apiVersion = apiVersionOf(resource);
  if (value['apiVersion'] !== apiVersion) {
    throw badRequest(
      `the API version in the data (${value['apiVersion']}) does not match the expected API version (${apiVersion})`,
    );
  }
  if (value['kind'] !== resource.kind) {
    throw badRequest(
      `${value['kind']} in version "${resource.version}" cannot be handled as a ${resource.kind}: the kind in the data (${value['kind']}) does not match the expected kind (${resource.kind})`,
    );
  }
  if (value['metadata'] === undefined || value['metadata'] === null) value['metadata'] = {};
  if (!isRecord(value['metadata'])) throw refuse(describeMetadataError(resource.kind, value['metadata']));
  const object = value as KubeObject;
  placeInNamespace(call, object);
  return object;
}

function describeMetadataError(kind: string, value: unknown): string {
  const got = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return `json: cannot unmarshal ${got} into Go struct field ${kind}.metadata of type v1.ObjectMeta`;
}

function placeInNamespace({ route, served }: Call, { metadata }: KubeObject): void {
  if (!served.resource.namespaced) return;
  metadata.namespace ??= route.namespace;
  if (metadata.namespace === '') metadata.namespace = route.namespace;
  if (metadata.namespace !== route.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

/** Returns the error for JSON that does not decode to this kind: Go's decoder rejects it before validation. */
export function undecodable({ served }: Call, why: string): ApiError {
  const { kind, version } = served.resource;
  return badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`);
}

function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? '';
  return text.length > 500 ? `${text.slice(0, 500)}...` : text;
}
