/** Brings an object into the shape of its kind: unknown fields out (told as the client asked), defaults in, types right. */
import type { Call } from '#engine/handlers/call.ts';
import { undecodable } from '#engine/handlers/read-object.ts';
import type { FieldValidation } from '#engine/options.ts';
import { compileSchema, type CompiledSchema } from '#engine/registry/structural/compile.ts';
import { metadataSchema, validateMetadata, validateMetadataUpdate } from '#engine/registry/metadata.ts';
import { type ApiError, invalid } from '#kube/api-error.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { decodeTypeError } from '#engine/registry/structural/decode-type-error.ts';

/** More unknown fields than this are not listed one by one. */
const MAX_REPORTED = 20;
/** Past these a custom resource's are not even sorted. */
const MAX_NOTED = 1000;

const metadataOnly: CompiledSchema = compileSchema(
  { type: 'object', properties: { metadata: metadataSchema } },
  { dropEmpty: true },
);

type OnUnknown = (path: string) => void;

/**
 * Changes the object in place; gives the warnings for what was dropped, or throws under `Strict`. `refuse` makes the
 * error for an object that is not of its kind.
 */
export function shapeObject(
  call: Call,
  object: KubeObject,
  fieldValidation: FieldValidation,
  refuse: (why: string) => ApiError = (why) => undecodable(call, why),
): string[] {
  const { schema, resource } = call.served;
  const problem = decodeTypeError(object, resource.builtIn ? schema : metadataOnly);
  if (problem !== undefined) throw refuse(problem);
  const paths: string[] = [];
  const note = (path: string) => {
    if (paths.length < MAX_NOTED) paths.push(path);
  };
  const onUnknown = fieldValidation === 'Ignore' ? undefined : note;
  if (resource.builtIn) schema.prune(object, onUnknown);
  else pruneCustom(object, schema, paths, onUnknown);
  const unknown = paths.slice(0, MAX_REPORTED).map((path) => `unknown field "${path}"`);
  if (fieldValidation === 'Strict' && unknown.length > 0) {
    throw refuse(`strict decoding error: ${unknown.join(', ')}`);
  }
  schema.applyDefaults(object);
  return unknown;
}

/** Kubernetes tells of built-in kinds in the order of the document; of custom ones the metadata first, the rest sorted. */
function pruneCustom(object: KubeObject, schema: CompiledSchema, paths: string[], onUnknown?: OnUnknown): void {
  pruneMetadata(object, onUnknown);
  // kubectl sends `creationTimestamp: null`; a null means that nothing was said.
  metadataOnly.applyDefaults(object);
  const ofMetadata = paths.length;
  schema.prune(object, onUnknown);
  if (paths.length - ofMetadata > 1) paths.push(...paths.splice(ofMetadata).sort());
}

const METADATA_FIELDS: ReadonlySet<string> = new Set(Object.keys(metadataSchema.properties ?? {}));

function pruneMetadata({ metadata }: KubeObject, onUnknown: OnUnknown | undefined): void {
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
