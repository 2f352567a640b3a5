/** How types stand to each other without any type parameter being bound. */
import type { CelType } from '#cel/type.ts';
import { opaque } from '#cel/type.ts';

/** The type of what was found wrong already: it fits everywhere, so that one mistake is told once. */
export const ERROR: CelType = opaque('!error!');

export function isDyn(type: CelType): boolean {
  return type.kind === 'primitive' && type.name === 'dyn';
}

export function isDynOrError(type: CelType): boolean {
  return type === ERROR || isDyn(type);
}

/** May a value of this type be compared with null? */
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

/** What a type is made of. */
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

/** The same type of the same parts with others put in. */
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

/** Same kind and same name; parts are not looked at. */
export function sameHead(a: CelType, b: CelType): boolean {
  return a.kind === b.kind && ('name' in a ? a.name : '') === ('name' in b ? b.name : '');
}
