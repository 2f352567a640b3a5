/** Parses JSON that a protobuf message contains as bytes; untrusted and bounded like a JSON body. */
import { isUtf8 } from 'node:buffer';
import { parseJson } from '#engine/encoding/json.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';

export function parseRawJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new ProtobufError('proto: raw JSON contains invalid UTF-8');
  try {
    return parseJson(bytes.toString('utf8'));
  } catch (cause) {
    throw new ProtobufError(`json parse error: ${(cause as Error).message}`, { cause });
  }
}
