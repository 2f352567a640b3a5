/**
 * A structural schema compiled once to closures: prune, default, validate. Whoever serves a kind keeps the result.
 * x-kubernetes-validations are apart (`rules`), because they may take time. Unsupported formats are ignored, as in
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
  /** Whether Go would decode it into the kind's struct; if not, decodeTypeError says why. */
  decodes(object: Record<string, unknown>): boolean;
  /** Removes unknown fields in place; `onUnknown` gets each path (`spec.list[0].bar`) in document order. */
  prune(object: Record<string, unknown>, onUnknown?: OnUnknown): void;
  /** Fills in defaults in place, and takes out what says nothing. A second call changes nothing. */
  applyDefaults(object: Record<string, unknown>): void;
  /** What is wrong, in kube-apiserver's words; empty when all is well. Changes nothing. */
  validate(object: Record<string, unknown>): FieldError[];
  /** As `validate`, but what did not change may be wrong: schemas become stricter while objects exist. */
  validateUpdate(object: Record<string, unknown>, old: Record<string, unknown>): FieldError[];
  /** Of the status alone, which is written apart. */
  validateStatus(object: Record<string, unknown>): FieldError[];
  /** undefined = there are none. */
  readonly rules: RuleValidator | undefined;
}

export interface CompileOptions {
  /** False for a part of an object: then apiVersion, kind and metadata at the top are fields like others. */
  readonly root?: boolean;
  /**
   * Built-in kinds: lists of type map and set may hold duplicates, because kube-apiserver leaves that to each kind
   * (two environment variables of one name are fine, two containers are not).
   */
  readonly builtIn?: boolean;
  /** Empty maps and lists are not kept where nothing requires them; so it is in built-in kinds and in all metadata. */
  readonly dropEmpty?: boolean;
}

export function compileSchema(schema: Schema, options: CompileOptions = {}): CompiledSchema {
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
    // Compiled when they are first needed: many kinds are never written.
    get rules() {
      return hasOwnRules ? (rules ??= compileRules(schema)) : undefined;
    },
  };
}

function statusOnly({ properties }: Schema): Schema {
  const status = properties?.['status'];
  return { type: 'object', properties: status === undefined ? {} : { status } };
}
