/** JSON that travels inside a protobuf message as bytes; as untrusted as a JSON body and bounded in the same way. */
import { isUtf8 } from 'node:buffer';
import { MAX_DEPTH } from '#engine/limits.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';

/** A key that reaches a prototype when it is assigned; `\u005f` is an escaped underscore. */
const SUSPECT = /__proto__|\\u005f/i;

export function parseRawJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new ProtobufError('proto: raw JSON contains invalid UTF-8');
  const text = bytes.toString('utf8');
  assertDepth(text);
  try {
    return SUSPECT.test(text) ? JSON.parse(text, dropPrototypeKeys) : JSON.parse(text);
  } catch (cause) {
    throw new ProtobufError(`json parse error: ${(cause as Error).message}`, { cause });
  }
}

function dropPrototypeKeys(this: unknown, key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}

/** Before parsing, because a reviver recurses; in text that is no JSON it may err, but that text is refused anyway. */
function assertDepth(text: string): void {
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    if (depth > MAX_DEPTH) throw new ProtobufError(`json: nested too deeply: the limit is ${MAX_DEPTH} levels`);
  }
}
