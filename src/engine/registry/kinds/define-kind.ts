/**
 * Builds a Resource from the properties that are specific to a built-in kind; the rest has defaults. The kind's own
 * functions are typed by its schema. Required fields may still be missing in `defaults` and `prepare*`; `validate*` see
 * zero values in their place.
 */
import { withZeroValues } from '#engine/registry/kinds/shared/missing-fields.ts';
import { ALL_VERBS, type TableColumn, type Resource, type Strategy } from '#engine/registry/resource.ts';
import { compileDefaults } from '#engine/registry/structural/defaults.ts';
import type { FieldError } from '#kube/field-error.ts';
import { groupResource, type KubeObject } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

/** An object of the kind that a schema describes. */
type ObjectOf<S extends Schema> = KubeObject & Infer<S>;

export interface KindColumn<T> extends Omit<TableColumn, 'value' | 'type'> {
  /** Defaults to string, as most built-in columns do. */
  readonly type?: TableColumn['type'];
  value(object: T, now: number): ReturnType<TableColumn['value']>;
}

/** The properties of a built-in kind, as far as they differ from the defaults. */
interface KindDefinition<S extends Schema> extends Partial<
  Pick<
    Resource,
    | 'needsRevision'
    | 'isReview'
    | 'shortNames'
    | 'categories'
    | 'verbs'
    | 'status'
    | 'generation'
    | 'nameRule'
    | 'extraSubresources'
    | 'singular'
  >
> {
  /** API group; '' or absent for the core group. */
  readonly group?: string;
  readonly version?: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** The schema without apiVersion, kind and metadata. */
  readonly schema: S;
  /** Columns after the name column, unless one of them has that name. */
  readonly columns: readonly KindColumn<ObjectOf<S>>[];
  readonly selectableFields?: Readonly<Record<string, (object: ObjectOf<S>) => string>>;
  /**
   * Sets defaults that depend on other fields, which the schema cannot express. Runs on create and update; must be
   * idempotent.
   */
  defaults?(object: ObjectOf<S>): void;
  prepareForCreate?(object: ObjectOf<S>): void;
  prepareForUpdate?(object: ObjectOf<S>, old: ObjectOf<S>): void;
  validate?(object: ObjectOf<S>): FieldError[];
  validateCreate?(object: ObjectOf<S>): FieldError[];
  validateUpdate?(object: ObjectOf<S>, old: ObjectOf<S>): FieldError[];
  warnings?(object: ObjectOf<S>): string[];
  graceSeconds?(object: ObjectOf<S>, requested: number | undefined): number;
  beginDeletion?(object: ObjectOf<S>): void;
  hasDeletionBlocker?(object: ObjectOf<S>): boolean;
  /** True if a new object keeps the status of the request (Node). Otherwise it starts with an empty status. */
  readonly keepsSentStatus?: boolean;
}

export function defineKind<S extends Schema>(definition: KindDefinition<S>): Resource {
  const { group = '', version = 'v1', kind, plural, namespaced, status = false, generation = false } = definition;
  return {
    group,
    version,
    kind,
    plural,
    namespaced,
    listKind: `${kind}List`,
    singular: definition.singular ?? kind.toLowerCase(),
    shortNames: definition.shortNames ?? [],
    categories: definition.categories ?? [],
    verbs: definition.verbs ?? ALL_VERBS,
    collection: groupResource({ group, plural }),
    storageVersion: version,
    schema: definition.schema,
    columns: definition.columns.map((column) => ({ type: 'string', ...column })),
    status,
    generation,
    selectableFields: (definition.selectableFields ?? {}) as Resource['selectableFields'],
    nameRule: definition.nameRule ?? 'subdomain',
    builtIn: true,
    strategy: strategyOf(definition),
    ...(definition.needsRevision === true ? { needsRevision: true } : {}),
    ...(definition.isReview === true ? { isReview: true } : {}),
    ...(definition.extraSubresources === undefined ? {} : { extraSubresources: definition.extraSubresources }),
  };
}

type Hooks = Strategy & {
  readonly schema: Schema;
  readonly status?: boolean;
  readonly keepsSentStatus?: boolean;
  defaults?(object: KubeObject): void;
};

function strategyOf(hooks: Hooks): Strategy {
  const { schema, defaults, validate, validateCreate, validateUpdate, warnings } = hooks;
  const { graceSeconds, beginDeletion, hasDeletionBlocker } = hooks;
  const clearStatus = hooks.status === true && hooks.keepsSentStatus !== true ? statusReset(schema) : undefined;
  const beforeCreate = sequence(clearStatus, defaults, hooks.prepareForCreate);
  const beforeUpdate = sequence<[old: KubeObject]>(defaults, hooks.prepareForUpdate);
  return {
    ...(defaults && { defaults }),
    ...(beforeCreate && { prepareForCreate: beforeCreate }),
    ...(beforeUpdate && { prepareForUpdate: beforeUpdate }),
    ...(validate && { validate: withZeroValues(schema, (object) => validate(object as KubeObject)) }),
    ...(validateCreate && { validateCreate }),
    ...(validateUpdate && {
      validateUpdate: withZeroValues(schema, (object, old: KubeObject) => validateUpdate(object as KubeObject, old)),
    }),
    ...(warnings && { warnings }),
    ...(graceSeconds && { graceSeconds }),
    ...(beginDeletion && { beginDeletion }),
    ...(hasDeletionBlocker && { hasDeletionBlocker }),
  };
}

type Step<A extends unknown[]> = ((object: KubeObject, ...rest: A) => void) | undefined;

function sequence<A extends unknown[]>(...steps: readonly Step<A>[]): Step<A> {
  const taken = steps.filter((step) => step !== undefined);
  if (taken.length < 2) return taken[0];
  return (object, ...rest) => {
    for (const step of taken) step(object, ...rest);
  };
}

/** Resets the status of a new object to nothing, or to the schema's default. */
function statusReset(schema: Schema): (object: KubeObject) => void {
  const initial: { status?: unknown } = {};
  const status = schema.properties?.['status'];
  if (status !== undefined) compileDefaults({ type: 'object', properties: { status } })(initial);
  return (object) => {
    if (initial.status === undefined) delete object['status'];
    else object['status'] = structuredClone(initial.status);
  };
}
