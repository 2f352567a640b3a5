/**
 * Converts an object to the shape of its kind: removes unknown fields (reported as the client requested), sets
 * defaults, checks types.
 */
import type { Call } from '#engine/handlers/call.ts';
import { undecodable } from '#engine/handlers/write/read-object.ts';
import { checkSchemaRules } from '#engine/handlers/write/rule-check.ts';
import type { FieldValidation } from '#engine/handlers/options.ts';
import { compileSchema, type CompiledSchema } from '#engine/registry/structural/compile.ts';
import { asWarnings, strictDecodingErrors } from '#engine/body/strict-decoding-errors.ts';
import { metadataSchema } from '#engine/registry/kinds/meta/object-meta.ts';
import { validateMetadata, validateMetadataUpdate } from '#engine/registry/metadata.ts';
import { type ApiError, invalid } from '#kube/api-error.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { decodeTypeError } from '#engine/registry/structural/decode-type-error.ts';

/** Number of unknown fields that are reported. */
const MAX_REPORTED = 20;
/** Number of unknown fields of a custom resource that are collected for sorting. */
const MAX_NOTED = 1000;

const metadataOnly: CompiledSchema = compileSchema(
  { type: 'object', properties: { metadata: metadataSchema } },
  { dropEmpty: true },
);

type OnUnknown = (path: string) => void;

type ToError = (why: string) => ApiError;

/**
 * Modifies the object in place. Returns warnings for removed and duplicate fields, or throws under `Strict`. `toError`
 * builds the error for an object that is not of its kind.
 */
export function shapeObject(
  call: Call,
  object: KubeObject,
  fieldValidation: FieldValidation,
  toError: ToError = (why) => undecodable(call, why),
): string[] {
  assertDecodable(call, object, toError);
  return shapeDecodable(call, object, fieldValidation, toError);
}

/** Like shapeObject, in two turns if the object is large. */
export async function shapeInTurns(
  call: Call,
  object: KubeObject,
  fieldValidation: FieldValidation,
  toError: ToError = (why) => undecodable(call, why),
): Promise<string[]> {
  await call.pace.step();
  assertDecodable(call, object, toError);
  await call.pace.step();
  const warnings = shapeDecodable(call, object, fieldValidation, toError);
  await call.pace.step();
  return warnings;
}

function assertDecodable({ served: { schema, resource } }: Call, object: KubeObject, toError: ToError): void {
  const problem = decodeTypeError(object, resource.builtIn ? schema : metadataOnly);
  if (problem !== undefined) throw toError(problem);
}

function shapeDecodable(call: Call, object: KubeObject, fieldValidation: FieldValidation, toError: ToError): string[] {
  const { schema, resource } = call.served;
  const paths: string[] = [];
  const collect = (path: string) => {
    if (paths.length < MAX_NOTED) paths.push(path);
  };
  const onUnknown = fieldValidation === 'Ignore' ? undefined : collect;
  if (resource.builtIn) schema.prune(object, onUnknown);
  else pruneCustom(object, schema, paths, onUnknown);
  const errors =
    fieldValidation === 'Ignore' ? [] : strictDecodingErrors(paths.slice(0, MAX_REPORTED), call.notes.duplicates);
  if (fieldValidation === 'Strict' && errors.length > 0) throw toError(`strict decoding error: ${errors.join(', ')}`);
  schema.applyDefaults(object);
  return asWarnings(errors);
}

/**
 * Kubernetes reports unknown fields of built-in kinds in document order; of custom kinds metadata first, then the rest
 * sorted.
 */
function pruneCustom(object: KubeObject, schema: CompiledSchema, paths: string[], onUnknown?: OnUnknown): void {
  pruneMetadata(object, onUnknown);
  // kubectl sends `creationTimestamp: null`; null counts as absent.
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

/** Throws, or rejects if the rules of the schema take long. */
export function validateNew(call: Call, object: KubeObject): void | Promise<void> {
  const { resource, schema } = call.served;
  return finishValidation(call, object, undefined, [
    ...validateMetadata(object, resource),
    ...schema.validate(object),
    ...(resource.strategy.validate?.(object) ?? []),
    ...(resource.strategy.validateCreate?.(object) ?? []),
  ]);
}

/** Like validateNew. Custom kinds ignore errors in unchanged values; a status is validated completely and alone. */
export function validateChanged(call: Call, object: KubeObject, old: KubeObject): void | Promise<void> {
  const { resource, schema } = call.served;
  const isStatus = call.route.subresource === 'status';
  return finishValidation(call, object, old, [
    ...validateMetadata(object, resource),
    ...validateMetadataUpdate(object, old),
    ...(resource.builtIn
      ? schema.validate(object)
      : isStatus
        ? schema.validateStatus(object)
        : schema.validateUpdate(object, old)),
    ...(resource.strategy.validate?.(object) ?? []),
    ...(resource.strategy.validateUpdate?.(object, old) ?? []),
  ]);
}

function finishValidation(
  call: Call,
  object: KubeObject,
  old: KubeObject | undefined,
  errors: readonly FieldError[],
): void | Promise<void> {
  const { rules } = call.served.schema;
  const all = rules === undefined ? errors : checkSchemaRules(call, rules, { object, old, errors });
  if (all instanceof Promise) return all.then((found) => throwIfInvalid(call, object, found));
  throwIfInvalid(call, object, all);
}

function throwIfInvalid(call: Call, object: KubeObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(call.served.resource, object.metadata.name ?? '', errors);
}
