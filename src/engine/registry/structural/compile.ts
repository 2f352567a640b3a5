/**
 * Compiles a structural schema to closures that prune, default and validate. Callers cache the result.
 * x-kubernetes-validations are separate (`rules`), because they may take long. Unsupported formats are ignored, as in
 * Kubernetes.
 */
import { compileDecodes } from '#engine/registry/structural/decode.ts';
import { compileDefaults } from '#engine/registry/structural/defaults.ts';
import { compilePrune, type OnUnknown } from '#engine/registry/structural/prune.ts';
import { compileRules, hasRules, type RuleValidator } from '#engine/registry/structural/rules/rule-tree.ts';
import { compileValidator, type Validator } from '#engine/registry/structural/validate.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

export interface CompiledSchema {
  readonly schema: Schema;
  /** Reports whether Go would decode the object into the kind's struct. decodeTypeError returns the reason. */
  decodes(object: Record<string, unknown>): boolean;
  /** Removes unknown fields in place. Calls `onUnknown` with each path (`spec.list[0].bar`) in document order. */
  prune(object: Record<string, unknown>, onUnknown?: OnUnknown): void;
  /** Sets defaults and removes empty values in place. Idempotent. */
  applyDefaults(object: Record<string, unknown>): void;
  /** Returns all errors with kube-apiserver's messages. Does not change the object. */
  validate(object: Record<string, unknown>): FieldError[];
  /**
   * Like `validate`, but ignores errors in unchanged values, because schemas may become stricter while objects exist.
   */
  validateUpdate(object: Record<string, unknown>, old: Record<string, unknown>): FieldError[];
  /** Validates only the status, which is written separately. */
  validateStatus(object: Record<string, unknown>): FieldError[];
  /** The validation rules; undefined if there are none. */
  readonly rules: RuleValidator | undefined;
}

interface SchemaCompileOptions {
  /** False for a part of an object: then apiVersion, kind and metadata at the top are ordinary fields. */
  readonly root?: boolean;
  /**
   * For built-in kinds: lists of type map and set may contain duplicates, because kube-apiserver leaves that check to
   * each kind (duplicate environment variables are allowed, duplicate containers are not).
   */
  readonly builtIn?: boolean;
  /** True to remove empty maps and lists that are not required, as in built-in kinds and all metadata. */
  readonly dropEmpty?: boolean;
}

export function compileSchema(schema: Schema, options: SchemaCompileOptions = {}): CompiledSchema {
  const { root = true, builtIn = false, dropEmpty = builtIn } = options;
  const validator = compileValidator(schema, { uniqueLists: !builtIn });
  let ofStatus: Validator | undefined;
  let rules: RuleValidator | undefined;
  const hasOwnRules = !builtIn && hasRules(schema);
  return {
    schema,
    decodes: compileDecodes(schema),
    prune: compilePrune(schema, root),
    applyDefaults: compileDefaults(schema, { dropEmpty }),
    validate: (object) => validator.validate(object),
    validateUpdate: (object, old) => validator.validateUpdate(object, old),
    validateStatus(object) {
      ofStatus ??= compileValidator(statusOnly(schema), { uniqueLists: !builtIn });
      return ofStatus.validate(object);
    },
    // Compiled on first use: many kinds are never written.
    get rules() {
      return hasOwnRules ? (rules ??= compileRules(schema)) : undefined;
    },
  };
}

function statusOnly({ properties }: Schema): Schema {
  const status = properties?.['status'];
  return { type: 'object', properties: status === undefined ? {} : { status } };
}
