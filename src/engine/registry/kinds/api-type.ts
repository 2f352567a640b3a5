/**
 * The types of the Kubernetes API: each field has its number in protobuf, its schema and its description in one place.
 * The value is a schema; the API server validates with it, openapi/ documents it, and protobuf/ decodes it.
 *
 *   const containerPort = apiType('core.v1.ContainerPort', 'A network port of a container.', {
 *     name: optional(1, str(), 'Name of the port.'),
 *     containerPort: required(3, int32(), 'Port number in the container.'),
 *   });
 *
 * Fields are in the order of the Go struct, in which Kubernetes writes JSON; schemas list them by name. The test
 * protobuf/field-numbers.test.ts compares the numbers with those of Kubernetes.
 */
import { invariant } from '#lib/invariant.ts';
import { type Infer, obj, type ObjectOptions, type Typed } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

/** Messages that the schema does not show: several have the same JSON form, or any. */
type SpecialMessage =
  | 'MicroTime'
  | 'RawExtension'
  | 'FieldsV1'
  | 'ExtraValue'
  | 'JSONSchemaProps'
  | 'CustomResourceSubresourceStatus';

/** The properties of a field in Go, as far as they differ from the most frequent ones. */
interface FieldOptions {
  /** True if Go's JSON omits an empty value (`omitempty`). */
  readonly omitEmpty?: boolean;
  readonly message?: SpecialMessage;
}

export interface ApiField<S extends Schema = Schema, R extends boolean = boolean> {
  /** Undefined if the field exists only in JSON. */
  readonly number: number | undefined;
  /** The schema of the value with the description of the field. */
  readonly schema: S;
  readonly isRequired: R;
  /** True if Go's JSON omits an empty value (`omitempty`). */
  readonly omitEmpty: boolean;
  /** True if an empty value on the wire was set and is kept. */
  readonly pointer: boolean;
  readonly message: SpecialMessage | undefined;
  /** The message that contains the field on the wire, but not in JSON. */
  readonly inlined: InlinedMessage | undefined;
}

type ApiFields = Readonly<Record<string, ApiField>>;

interface InlinedMessage {
  readonly number: number;
  readonly type: ApiType;
}

/** A named type. */
export interface ApiType {
  /** Group, version and name: `core.v1.Container`. */
  readonly name: string;
  readonly description: string;
  readonly fields: ApiFields;
}

/** A field that clients must set. Go writes it always, even if it is empty. */
export function required<S extends Schema>(
  number: number,
  schema: S,
  description: string,
  { omitEmpty = false, pointer: isPointer = false, message }: FieldOptions & { readonly pointer?: boolean } = {},
): ApiField<S, true> {
  return field(number, schema, description, { isRequired: true, omitEmpty, pointer: isPointer, message });
}

/** A field that Go omits if it is empty. */
export function optional<S extends Schema>(
  number: number,
  schema: S,
  description: string,
  { omitEmpty = true, message }: FieldOptions = {},
): ApiField<S, false> {
  return field(number, schema, description, { isRequired: false, omitEmpty, pointer: false, message });
}

/** An optional field that is a pointer in Go: an empty value differs from an absent one. */
export function pointer<S extends Schema>(
  number: number,
  schema: S,
  description: string,
  { omitEmpty = true, message }: FieldOptions = {},
): ApiField<S, false> {
  return field(number, schema, description, { isRequired: false, omitEmpty, pointer: true, message });
}

/** A field that has no number: only JSON contains it. */
export function jsonOnly<S extends Schema>(schema: S, description: string): ApiField<S, false> {
  return field(undefined, schema, description, {
    isRequired: false,
    omitEmpty: true,
    pointer: false,
    message: undefined,
  });
}

function field<S extends Schema, R extends boolean>(
  number: number | undefined,
  schema: S,
  description: string,
  rest: Pick<ApiField<S, R>, 'isRequired' | 'omitEmpty' | 'pointer' | 'message'>,
): ApiField<S, R> {
  return { number, schema: { ...schema, description }, inlined: undefined, ...rest };
}

/**
 * Returns the fields of a struct that another one embeds. JSON shows them as fields of the outer type; on the wire they
 * are a message with this number.
 */
export function inlined<F extends ApiFields>(number: number, name: string, fields: F): F {
  const type: ApiType = { name, description: '', fields };
  const entries = Object.entries(fields).map(([key, value]) => [key, { ...value, inlined: { number, type } }]);
  return Object.fromEntries(entries) as F;
}

type Properties<F extends ApiFields> = { [K in keyof F]: F[K]['schema'] };
type RequiredNames<F extends ApiFields> = { [K in keyof F]: F[K] extends ApiField<Schema, true> ? K : never }[keyof F];
type TypeOf<F extends ApiFields> = { [K in RequiredNames<F>]: Infer<F[K]['schema']> } & {
  [K in Exclude<keyof F, RequiredNames<F>>]?: Infer<F[K]['schema']>;
};

interface TypeOptions extends Pick<ObjectOptions<never>, 'atomic' | 'open'> {
  readonly description: string;
}

/** By the properties of their schema, which copies of the schema with other options share. */
const types = new WeakMap<object, ApiType>();

/** Returns the schema of a type. `about` is the description of the type, or the description with options. */
export function apiType<F extends ApiFields>(
  name: string,
  about: string | TypeOptions,
  fields: F,
): Typed<TypeOf<F>> & { properties: Properties<F> } {
  const { description, ...options } = typeof about === 'string' ? { description: about } : about;
  const names = Object.keys(fields);
  const properties = Object.fromEntries(names.toSorted().map((key) => [key, fields[key]!.schema]));
  types.set(properties, { name, description, fields });
  const schema: Schema = obj(properties, { ...options, required: names.filter((key) => fields[key]!.isRequired) });
  return schema as Typed<TypeOf<F>> & { properties: Properties<F> };
}

/** Returns the type of a schema from apiType(), or undefined for another schema. */
export function apiTypeOf(schema: Schema): ApiType | undefined {
  return schema.properties === undefined ? undefined : types.get(schema.properties);
}

/** Declares that a schema describes the same type as another one, less strictly. */
export function asTypeOf<S extends Schema>(strict: Schema, schema: S): S {
  const type = apiTypeOf(strict);
  invariant(type !== undefined && schema.properties !== undefined, 'both are schemas of objects, one of a named type');
  types.set(schema.properties, type);
  return schema;
}
