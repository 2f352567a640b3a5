/** The types of CEL, for the checker and for `type()`. */

export type PrimitiveName =
  | 'bool'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'null_type'
  | 'dyn'
  | 'google.protobuf.Timestamp'
  | 'google.protobuf.Duration';

export interface PrimitiveType {
  readonly kind: 'primitive';
  readonly name: PrimitiveName;
}

export interface ListType {
  readonly kind: 'list';
  readonly element: CelType;
}

export interface MapType {
  readonly kind: 'map';
  readonly key: CelType;
  readonly value: CelType;
}

export interface OptionalType {
  readonly kind: 'optional';
  readonly of: CelType;
}

/** The type of a type: `type(1)`. */
export interface MetaType {
  readonly kind: 'type';
  readonly of: CelType;
}

/** A value that only its library can interpret: `kubernetes.Quantity`. */
export interface OpaqueType {
  readonly kind: 'opaque';
  readonly name: string;
}

/** A map whose keys are known from a schema. At run time the value is a map. */
export interface ObjectType {
  readonly kind: 'object';
  readonly name: string;
  /** Returns undefined if the field does not exist. */
  field(name: string): CelType | undefined;
}

/** A type parameter. Within one overload, the same name is the same type. */
export interface ParamType {
  readonly kind: 'param';
  readonly name: string;
}

export type CelType =
  | PrimitiveType
  | ListType
  | MapType
  | OptionalType
  | MetaType
  | OpaqueType
  | ObjectType
  | ParamType;

const primitive = (name: PrimitiveName): PrimitiveType => ({ kind: 'primitive', name });

export const BOOL = primitive('bool');
export const INT = primitive('int');
export const UINT = primitive('uint');
export const DOUBLE = primitive('double');
export const STRING = primitive('string');
export const BYTES = primitive('bytes');
export const NULL = primitive('null_type');
export const DYN = primitive('dyn');
export const TIMESTAMP = primitive('google.protobuf.Timestamp');
export const DURATION = primitive('google.protobuf.Duration');

export const listOf = (element: CelType): ListType => ({ kind: 'list', element });
export const mapOf = (key: CelType, value: CelType): MapType => ({ kind: 'map', key, value });
export const optionalOf = (of: CelType): OptionalType => ({ kind: 'optional', of });
export const typeOf = (of: CelType): MetaType => ({ kind: 'type', of });
export const opaque = (name: string): OpaqueType => ({ kind: 'opaque', name });
export const param = (name: string): ParamType => ({ kind: 'param', name });
