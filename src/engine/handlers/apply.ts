/** PATCH by server-side apply: creates the object if it does not exist, else applies its manager's configuration. */
import { readPacedBody } from '#engine/handlers/pace.ts';
import { parseYamlText, tooManyValues, type OnDuplicates } from '#engine/body/decode-body.ts';
import type { Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { createShaped } from '#engine/handlers/create.ts';
import { assertAllowed } from '#engine/handlers/stored-access.ts';
import { modify } from '#engine/handlers/write/modify.ts';
import { writerOf } from '#engine/handlers/write/own-fields.ts';
import { asObject } from '#engine/handlers/write/read-object.ts';
import { shapeObject } from '#engine/handlers/write/shape.ts';
import { countValues, NestingError, ValueCountError } from '#engine/encoding/json-bounds.ts';
import { parseRequestJson } from '#engine/encoding/json.ts';
import { MAX_WRITE_ATTEMPTS } from '#engine/request/limits.ts';
import { kindText } from '#kube/go/go-text.ts';
import { applyInSteps, type Applier } from '#engine/managed-fields/apply-configuration.ts';
import { fieldScope } from '#engine/managed-fields/field-scope.ts';
import { writeOptions, type WriteRequestOptions } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { asWarnings, yamlDuplicates } from '#engine/body/strict-decoding-errors.ts';
import { parseYamlWithDuplicates } from '#engine/body/yaml-duplicates.ts';
import { ApiError, badRequest, conflict, MODIFIED, tooLarge } from '#kube/api-error.ts';
import { deepClone } from '#kube/deep.ts';
import { apiVersionOf, isRecord, type KubeObject } from '#kube/meta.ts';

export async function applyObject(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'PatchOptions', true);
  const bytes = await readPacedBody(call);
  const config = asConfig(call, parseConfig(bytes, duplicateKeyHandler(call, options)));
  assertConfigSize(config);
  const { resource } = call.served;
  const { namespace, name, subresource } = call.route;
  const id = entryId(resource, namespace, name);
  const change = (current: KubeObject | undefined) => buildApplied(call, current, config, options);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    if (subresource !== '' || call.store.latest(resource.collection, id) !== undefined) {
      try {
        // Unknown fields were rejected before.
        const how = { fieldValidation: 'Ignore', needsRevision: false, owned: true, change } as const;
        return await modify(call, { ...options, ...how });
      } catch (error) {
        // The object was deleted meanwhile, so it is created again.
        const isDeleted = isNotFound(error) && call.store.latest(resource.collection, id) === undefined;
        if (subresource !== '' || !isDeleted) throw error;
        continue;
      }
    }
    if (call.pace.isLarge) await call.pace.step();
    const object = await change(undefined);
    if (call.pace.isLarge) await call.pace.step();
    const made = await create(call, object, options);
    if (made !== undefined) return made;
  }
  throw conflict(resource, name, MODIFIED);
}

/** Limit of the fields and list items of a configuration: several sets of fields are compared to apply them. */
const MAX_CONFIG_VALUES = 32_768;

function assertConfigSize(config: KubeObject): void {
  if (countValues(config) <= MAX_CONFIG_VALUES) return;
  throw tooLarge(
    `Request entity too large: more than ${MAX_CONFIG_VALUES} applied fields and list items; split the object`,
  );
}

const isNotFound = (error: unknown) => error instanceof ApiError && error.code === 404;

export function applierOf(call: Call, { fieldManager, force }: WriteRequestOptions): Applier {
  return { ...writerOf(call, fieldManager), force };
}

function buildApplied(
  call: Call,
  current: KubeObject | undefined,
  config: KubeObject,
  options: WriteRequestOptions,
): KubeObject | Promise<KubeObject> {
  const scope = fieldScope(call.served, call.route.subresource);
  // The handlers modify the object and may retry.
  const applied = call.pace.run(applyInSteps(current, deepClone(config), applierOf(call, options), scope));
  return applied instanceof Promise ? applied.then((object) => asObject(call, object)) : asObject(call, applied);
}

/** Returns undefined if another request created the object first. */
function create(call: Call, object: KubeObject, options: WriteRequestOptions): Promise<ApiResponse | undefined> {
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
  // Permission to patch does not imply permission to create.
  assertAllowed(call, 'create', call.route);
  shapeObject(call, object, 'Ignore');
  const { force: _, ...sent } = options.sent;
  return createShaped(call, object, {
    dryRun: options.dryRun,
    sent: { ...sent, kind: 'CreateOptions' },
    warnings: [],
    owned: true,
  });
}

/** Handles duplicate keys in a configuration as Kubernetes does. */
function duplicateKeyHandler({ notes }: Call, { fieldValidation }: WriteRequestOptions): OnDuplicates | undefined {
  if (fieldValidation === 'Ignore') return undefined;
  return (duplicates) => {
    const errors = duplicates([]);
    if (fieldValidation === 'Warn') return asWarnings(errors).forEach((line) => notes.warn(line));
    throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${errors.join(', ')}`);
  };
}

/** Parses YAML; JSON takes a faster path. */
export function parseConfig(bytes: Buffer, onDuplicates?: OnDuplicates): unknown {
  const text = bytes.toString('utf8');
  try {
    return parseRequestJson(
      text,
      onDuplicates && { bytes, mayHaveDuplicates: () => reportDuplicateYamlKeys(text, onDuplicates) },
    );
  } catch (error) {
    const isJson = /^\s*\{/.test(text);
    if (error instanceof NestingError) throw badRequest(`error decoding YAML: ${error.message}`);
    if (error instanceof ValueCountError && isJson) throw tooManyValues(error);
    if (error instanceof ApiError) throw error;
  }
  try {
    return parseYamlText(text, onDuplicates);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (error instanceof ValueCountError) throw tooManyValues(error);
    if (!(error instanceof Error)) throw error;
    throw badRequest(`error decoding YAML: ${error.message}`);
  }
}

/** Reports duplicates with the YAML messages, also for JSON. */
function reportDuplicateYamlKeys(text: string, onDuplicates: OnDuplicates): void {
  const { duplicates } = parseYamlWithDuplicates(text);
  if (duplicates !== undefined) onDuplicates(yamlDuplicates(duplicates));
}

function asConfig({ served }: Call, parsed: unknown): KubeObject {
  const { resource } = served;
  // An empty document is an empty configuration.
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
