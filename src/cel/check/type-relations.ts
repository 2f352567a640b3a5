/** Predicates and transformations of types that do not bind type parameters. */
import type { CelType } from '#cel/type.ts';
import { opaque } from '#cel/type.ts';

/** The type of a node with a problem. It is assignable to every type, so that each mistake is reported once. */
export const ERROR: CelType = opaque('!error!');

export function isDyn(type: CelType): boolean {
  return type.kind === 'primitive' && type.name === 'dyn';
}

export function isDynOrError(type: CelType): boolean {
  return type === ERROR || isDyn(type);
}

/** Reports whether a value of this type can be compared with null. */
export function isNullable(type: CelType): boolean {
  switch (type.kind) {
    case 'primitive':
      return type.name === 'null_type' || type.name.startsWith('google.protobuf.');
    case 'optional':
    case 'opaque':
    case 'object':
      return true;
    default:
      return false;
  }
}

export function partsOf(type: CelType): readonly CelType[] {
  switch (type.kind) {
    case 'list':
      return [type.element];
    case 'map':
      return [type.key, type.value];
    case 'optional':
    case 'type':
      return [type.of];
    default:
      return [];
  }
}

/** Returns the type with each of its parts replaced. */
export function withParts(type: CelType, map: (part: CelType) => CelType): CelType {
  switch (type.kind) {
    case 'list':
      return { kind: 'list', element: map(type.element) };
    case 'map':
      return { kind: 'map', key: map(type.key), value: map(type.value) };
    case 'optional':
    case 'type':
      return { kind: type.kind, of: map(type.of) };
    default:
      return type;
  }
}

/** Compares kind and name, not the parts. */
export function haveSameHead(a: CelType, b: CelType): boolean {
  return a.kind === b.kind && ('name' in a ? a.name : '') === ('name' in b ? b.name : '');
}
