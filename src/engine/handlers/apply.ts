/** PATCH by server-side apply: makes the object where there is none, else changes it as its manager's configuration says. */
import { refusal } from '#engine/auth/authorize.ts';
import { parseYamlText, type OnRepeats } from '#engine/codec.ts';
import { entryId, type Call } from '#engine/handlers/call.ts';
import { createShaped } from '#engine/handlers/create.ts';
import { modify } from '#engine/handlers/modify.ts';
import { writerOf } from '#engine/handlers/own-fields.ts';
import { asObject } from '#engine/handlers/read-object.ts';
import { shapeObject } from '#engine/handlers/shape.ts';
import { NestingError, parseJson } from '#engine/json.ts';
import { MAX_WRITE_ATTEMPTS, MAX_YAML_BYTES } from '#engine/limits.ts';
import { applyConfiguration, kindText, type Applier } from '#engine/managed-fields/apply-configuration.ts';
import { fieldScope } from '#engine/managed-fields/field-scope.ts';
import { writeOptions, type WriteOptions } from '#engine/options.ts';
import type { ApiResponse } from '#engine/request.ts';
import { asWarnings, yamlRepeats } from '#engine/strict-faults.ts';
import { repeatedYamlKeys } from '#engine/yaml-repeats.ts';
import { ApiError, badRequest, conflict, MODIFIED, tooLarge } from '#kube/api-error.ts';
import { deepClone } from '#kube/deep.ts';
import { apiVersionOf, isRecord, type KubeObject } from '#kube/meta.ts';

export async function apply(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'PatchOptions', true);
  const config = asConfig(call, parseConfig(await call.request.body(), repeatsOf(call, options)));
  const { resource } = call.served;
  const { namespace, name, subresource } = call.route;
  const id = entryId(resource, namespace, name);
  const change = (current: KubeObject | undefined) => applied(call, current, config, options);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    if (subresource !== '' || call.store.latest(resource.collection, id) !== undefined) {
      try {
        // What the kind does not know was refused before.
        const how = { fieldValidation: 'Ignore', needsRevision: false, owned: true, change } as const;
        return await modify(call, { ...options, ...how });
      } catch (error) {
        // It went meanwhile: then it is made anew.
        const gone = isNotFound(error) && call.store.latest(resource.collection, id) === undefined;
        if (subresource !== '' || !gone) throw error;
        continue;
      }
    }
    const made = await create(call, change(undefined), options);
    if (made !== undefined) return made;
  }
  throw conflict(resource, name, MODIFIED);
}

const isNotFound = (error: unknown) => error instanceof ApiError && error.code === 404;

export function applierOf(call: Call, { fieldManager, force }: WriteOptions): Applier {
  return { ...writerOf(call, fieldManager), force };
}

function applied(call: Call, current: KubeObject | undefined, config: KubeObject, options: WriteOptions): KubeObject {
  const scope = fieldScope(call.served, call.route.subresource);
  // The handlers change what they get, and may ask again.
  return asObject(call, applyConfiguration(current, deepClone(config), applierOf(call, options), scope));
}

/** undefined = somebody was faster: there is one now. */
function create(call: Call, object: KubeObject, options: WriteOptions): Promise<ApiResponse | undefined> {
  const { resource } = call.served;
  const { name } = call.route;
  const { metadata } = object;
  if (!metadata.name) {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
  if (metadata.uid) {
    const why = `uid mismatch: the provided object specified uid ${metadata.uid}, and no existing object was found`;
    throw conflict(resource, name, why);
  }
  if (metadata.resourceVersion) throw conflict(resource, name, MODIFIED);
  assertMayCreate(call);
  shapeObject(call, object, 'Ignore');
  const { force: _, ...sent } = options.sent;
  return createShaped(call, object, {
    dryRun: options.dryRun,
    sent: { ...sent, kind: 'CreateOptions' },
    warnings: [],
    owned: true,
  });
}

/** Who may patch may not always create. */
function assertMayCreate({ authorizer, request, route }: Call): void {
  const { group, version, plural, subresource, namespace, name } = route;
  // A namespace is judged in itself, as wherever one is asked for.
  const within = group === '' && plural === 'namespaces' ? name : namespace;
  const asked = { verb: 'create', group, version, resource: plural, subresource, namespace: within, name };
  const decision = authorizer.authorize(request.user, asked);
  if (!decision.allowed) throw refusal(request.user, asked, decision.reason);
}

/** What Kubernetes does about keys that a configuration has twice. */
function repeatsOf({ notes }: Call, { fieldValidation }: WriteOptions): OnRepeats | undefined {
  if (fieldValidation === 'Ignore') return undefined;
  return (repeats) => {
    const faults = repeats([]);
    if (fieldValidation === 'Warn') return asWarnings(faults).forEach((line) => notes.warn(line));
    throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${faults.join(', ')}`);
  };
}

/** YAML, of which JSON is the quick part. */
export function parseConfig(bytes: Buffer, onRepeats?: OnRepeats): unknown {
  const text = bytes.toString('utf8');
  try {
    return parseJson(text, onRepeats && { bytes, mayRepeat: () => tellYamlRepeats(text, onRepeats) });
  } catch (error) {
    if (error instanceof NestingError) throw badRequest(`error decoding YAML: ${error.message}`);
    if (error instanceof ApiError) throw error;
  }
  if (bytes.length > MAX_YAML_BYTES) {
    throw tooLarge(`Request entity too large: limit is ${MAX_YAML_BYTES} for YAML; send JSON instead`);
  }
  try {
    return parseYamlText(text, onRepeats);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (!(error instanceof Error)) throw error;
    throw badRequest(`error decoding YAML: ${error.message}`);
  }
}

/** Told as of YAML, whatever it is. */
function tellYamlRepeats(text: string, onRepeats: OnRepeats): void {
  const fault = repeatedYamlKeys(text);
  if (fault !== undefined) onRepeats(yamlRepeats(fault));
}

function asConfig({ served }: Call, parsed: unknown): KubeObject {
  const { resource } = served;
  // An empty document says nothing.
  const value = parsed ?? {};
  if (!isRecord(value)) {
    const got = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
    throw badRequest(
      `error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${got} into Go value of type map[string]interface {}`,
    );
  }
  const { apiVersion = '', kind = '' } = value;
  if (apiVersion !== apiVersionOf(resource) || kind !== resource.kind) {
    const named = { apiVersion: String(apiVersion), kind: String(kind) };
    throw badRequest(`invalid object type: ${kindText(named)}`);
  }
  value['metadata'] ??= {};
  if (!isRecord(value['metadata'])) throw badRequest('error decoding YAML: metadata must be an object');
  return value as KubeObject;
}
