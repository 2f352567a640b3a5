/** JSON that travels inside a protobuf message as bytes; as untrusted as a JSON body and bounded in the same way. */
import { isUtf8 } from 'node:buffer';
import { MAX_DEPTH } from '#engine/limits.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';

/** A key that reaches a prototype when it is assigned; `\u005f` is an escaped underscore. */
const SUSPECT = /__proto__|\\u005f/i;

export function parseRawJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new ProtobufError('proto: raw JSON contains invalid UTF-8');
  const text = bytes.toString('utf8');
  const value = parse(text);
  assertDepth(value, 0);
  // Only now, because a reviver recurses.
  return SUSPECT.test(text) ? JSON.parse(text, dropPrototypeKeys) : value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ProtobufError(`json parse error: ${(cause as Error).message}`, { cause });
  }
}

function dropPrototypeKeys(this: unknown, key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}

function assertDepth(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth >= MAX_DEPTH) throw new ProtobufError(`json: nested too deeply: the limit is ${MAX_DEPTH} levels`);
  for (const item of Object.values(value)) assertDepth(item, depth + 1);
}
