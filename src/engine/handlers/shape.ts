/** Brings an object into the shape of its kind: unknown fields out (told as the client asked), defaults in, types right. */
import type { Call } from '#engine/handlers/call.ts';
import { undecodable } from '#engine/handlers/read-object.ts';
import type { FieldValidation } from '#engine/options.ts';
import { compileSchema, type CompiledSchema } from '#engine/registry/structural/compile.ts';
import { metadataSchema, validateMetadata, validateMetadataUpdate } from '#engine/registry/metadata.ts';
import { MAX_OBJECT_BYTES } from '#engine/limits.ts';
import { ApiError, invalid } from '#kube/api-error.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { decodeTypeError } from '#engine/registry/structural/decode-type-error.ts';

/** More unknown fields than this are not listed one by one. */
const MAX_REPORTED = 20;

const metadataOnly: CompiledSchema = compileSchema({ type: 'object', properties: { metadata: metadataSchema } });

/** Changes the object in place; gives the warnings for what was dropped, or throws under `Strict`. */
export function shapeObject(call: Call, object: KubeObject, fieldValidation: FieldValidation): string[] {
  const { schema, resource } = call.served;
  const unknown: string[] = [];
  const report = (path: string) => {
    if (unknown.length < MAX_REPORTED) unknown.push(`unknown field "${path}"`);
  };
  const onUnknown = fieldValidation === 'Ignore' ? undefined : report;
  const metadataProblem = decodeTypeError(object, metadataOnly);
  if (metadataProblem !== undefined) throw undecodable(call, metadataProblem);
  if (resource.builtIn) {
    const problem = decodeTypeError(object, schema);
    if (problem !== undefined) throw undecodable(call, problem);
  }
  pruneMetadata(object, onUnknown);
  // kubectl sends `creationTimestamp: null`; a null means that nothing was said.
  metadataOnly.applyDefaults(object);
  schema.prune(object, onUnknown);
  if (fieldValidation === 'Strict' && unknown.length > 0) {
    throw undecodable(call, `strict decoding error: ${unknown.join(', ')}`);
  }
  schema.applyDefaults(object);
  return unknown;
}

const METADATA_FIELDS: ReadonlySet<string> = new Set(Object.keys(metadataSchema.properties ?? {}));

function pruneMetadata({ metadata }: KubeObject, onUnknown: ((path: string) => void) | undefined): void {
  const fields = metadata as Record<string, unknown>;
  for (const key of Object.keys(fields)) {
    if (METADATA_FIELDS.has(key)) continue;
    delete fields[key];
    onUnknown?.(`metadata.${key}`);
  }
}

export function validateNew(call: Call, object: KubeObject): void {
  const { resource, schema } = call.served;
  refuse(call, object, [
    ...validateMetadata(object, resource),
    ...schema.validate(object),
    ...(resource.strategy.validate?.(object) ?? []),
  ]);
}

export function validateChanged(call: Call, object: KubeObject, old: KubeObject): void {
  const { resource, schema } = call.served;
  refuse(call, object, [
    ...validateMetadata(object, resource),
    ...validateMetadataUpdate(object, old),
    ...schema.validate(object),
    ...(resource.strategy.validate?.(object) ?? []),
    ...(resource.strategy.validateUpdate?.(object, old) ?? []),
  ]);
}

function refuse(call: Call, object: KubeObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(call.served.resource, object.metadata.name ?? '', errors);
}

/** Objects over the store's bound are refused as etcd does it, whichever verb made them that large. */
export function assertStorable(bytes: Buffer): Buffer {
  if (bytes.length > MAX_OBJECT_BYTES) {
    throw new ApiError(
      413,
      'RequestEntityTooLarge',
      `Request entity too large: the object has ${bytes.length} bytes; the limit is ${MAX_OBJECT_BYTES}`,
    );
  }
  return bytes;
}
