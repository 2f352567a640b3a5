/** Brings an object into the shape of its kind: unknown fields out (told as the client asked), defaults in, types right. */
import type { Call } from '#engine/handlers/call.ts';
import { undecodable } from '#engine/handlers/read-object.ts';
import { askRules } from '#engine/handlers/rule-check.ts';
import type { FieldValidation } from '#engine/options.ts';
import { compileSchema, type CompiledSchema } from '#engine/registry/structural/compile.ts';
import { metadataSchema, validateMetadata, validateMetadataUpdate } from '#engine/registry/metadata.ts';
import { asWarnings, strictFaults } from '#engine/strict-faults.ts';
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
 * Changes the object in place; gives the warnings for what was dropped or sent twice, or throws under `Strict`. `refuse` makes the
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
  const faults = fieldValidation === 'Ignore' ? [] : strictFaults(paths.slice(0, MAX_REPORTED), call.notes.repeats);
  if (fieldValidation === 'Strict' && faults.length > 0) throw refuse(`strict decoding error: ${faults.join(', ')}`);
  schema.applyDefaults(object);
  return asWarnings(faults);
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

/** Throws, or rejects where the rules of the schema take long. */
export function validateNew(call: Call, object: KubeObject): void | Promise<void> {
  const { resource, schema } = call.served;
  return conclude(call, object, undefined, [
    ...validateMetadata(object, resource),
    ...schema.validate(object),
    ...(resource.strategy.validate?.(object) ?? []),
  ]);
}

/** As validateNew. Custom kinds forgive what did not change, except that a status is checked whole, and alone. */
export function validateChanged(call: Call, object: KubeObject, old: KubeObject): void | Promise<void> {
  const { resource, schema } = call.served;
  const isStatus = call.route.subresource === 'status';
  return conclude(call, object, old, [
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

function conclude(
  call: Call,
  object: KubeObject,
  old: KubeObject | undefined,
  errors: readonly FieldError[],
): void | Promise<void> {
  const { rules } = call.served.schema;
  const all = rules === undefined ? errors : askRules(call, rules, { object, old, errors });
  if (all instanceof Promise) return all.then((found) => refuse(call, object, found));
  refuse(call, object, all);
}

function refuse(call: Call, object: KubeObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(call.served.resource, object.metadata.name ?? '', errors);
}
