/** Formats types as text: with the names of cel-go's checker messages, or with the names of the types themselves. */
import type { CelType } from '#cel/type.ts';

/** The number of parts of a type that are written. A hostile expression can build types of unlimited size. */
const MAX_PARTS = 200;

interface FormatState {
  readonly primitives: Readonly<Record<string, string>>;
  left: number;
}

const SHORT_NAMES = {
  null_type: 'null',
  'google.protobuf.Timestamp': 'timestamp',
  'google.protobuf.Duration': 'duration',
};

/** Formats a type as in `found no matching overload for '_+_' applied to '(int, null)'`. */
export function formatType(type: CelType): string {
  return formatPart(type, { primitives: SHORT_NAMES, left: MAX_PARTS });
}

/** Formats a type as in `must evaluate to bool but got null_type`. */
export function typeString(type: CelType): string {
  return formatPart(type, { primitives: {}, left: MAX_PARTS });
}

/** Returns `(int, string)`, or `string.(int)` for a call on a receiver. */
export function formatSignature(args: readonly CelType[], member: boolean): string {
  const names = args.map(formatType);
  return member ? `${names[0]}.(${names.slice(1).join(', ')})` : `(${names.join(', ')})`;
}

function formatPart(type: CelType, state: FormatState): string {
  state.left -= 1;
  if (state.left < 0) return '...';
  switch (type.kind) {
    case 'primitive':
      return state.primitives[type.name] ?? type.name;
    case 'list':
      return `list(${formatPart(type.element, state)})`;
    case 'map':
      return `map(${formatPart(type.key, state)}, ${formatPart(type.value, state)})`;
    case 'optional':
      return `optional_type(${formatPart(type.of, state)})`;
    case 'type':
      return `type(${formatPart(type.of, state)})`;
    case 'opaque':
    case 'object':
    case 'param':
      return type.name;
  }
}
