/** Decodes request bodies, which are untrusted: encoding/json.ts and kube/yaml.ts bound them. */
import { type ApiError, badRequest, tooLarge, unsupportedMediaType } from '#kube/api-error.ts';
import { findGoJsonError } from '#kube/go/go-json-error.ts';
import { parseYaml } from '#kube/yaml.ts';
import { NestingError, ValueCountError } from '#engine/encoding/json-bounds.ts';
import { parseRequestJson } from '#engine/encoding/json.ts';
import { JSON_TYPE, mediaType, YAML_TYPE } from '#engine/encoding/media-types.ts';
import { MAX_YAML_SEPARATORS } from '#engine/request/limits.ts';
import { decodeProtobuf } from '#engine/protobuf/decode-protobuf.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';
import {
  jsonDuplicates,
  patchDuplicates,
  yamlDuplicates,
  type DuplicateFields,
} from '#engine/body/strict-decoding-errors.ts';
import { parseYamlWithDuplicates } from '#engine/body/yaml-duplicates.ts';

const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

/** The expected type of a body, for error messages. */
interface ExpectedBody {
  readonly kind: string;
  /** Custom kinds have no protobuf encoding. */
  readonly builtIn: boolean;
}

/** Called with the duplicate fields of a body. Without a callback they are not searched for. */
export type OnDuplicates = (duplicates: DuplicateFields) => void;

/** Parses the body of a create, update or delete. No Content-Type means JSON, as in kube-apiserver. */
export function parseBody(
  bytes: Buffer,
  contentType: string,
  expected: ExpectedBody,
  onDuplicates?: OnDuplicates,
): unknown {
  const type = mediaType(contentType);
  const accepted = expected.builtIn ? [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE] : [JSON_TYPE, YAML_TYPE];
  if (type !== '' && !accepted.includes(type)) throw unsupportedMediaType(accepted);
  if (type === PROTOBUF_TYPE) return parseProtobuf(bytes, expected.kind);
  const text = bytes.toString('utf8');
  try {
    if (type === YAML_TYPE) return parseYamlText(text, onDuplicates);
    return parseRequestJson(
      text,
      onDuplicates && { bytes, mayHaveDuplicates: () => report(jsonDuplicates(text, expected), onDuplicates) },
    );
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error instanceof NestingError) throw badRequest(`the object provided is ${error.message}`);
    if (error instanceof ValueCountError) throw tooManyValues(error);
    const shown = text.length > 1000 ? `${text.slice(0, 1000)}...` : text;
    const why =
      type === YAML_TYPE
        ? `yaml parse error: ${error.message}`
        : `json parse error: ${describeJsonError(bytes, error)}`;
    throw unrecognized(expected.kind, `${why} (${shown})`);
  }
}

/** Returns the error for an object with too many fields and list items. */
export function tooManyValues({ message }: ValueCountError): ApiError {
  return tooLarge(`Request entity too large: ${message}`);
}

function report(duplicates: DuplicateFields | undefined, onDuplicates: OnDuplicates): void {
  if (duplicates !== undefined) onDuplicates(duplicates);
}

function parseProtobuf(bytes: Buffer, kind: string): unknown {
  try {
    return decodeProtobuf(bytes).object;
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw unrecognized(kind, error.message);
  }
}

function unrecognized(kind: string, why: string): ApiError {
  return badRequest(`the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; ${why}`);
}

export interface PatchReading {
  /** Prefix of error messages about the text. */
  readonly messagePrefix?: string;
  /** Prefix of duplicate fields. */
  readonly kind?: string;
  readonly onDuplicates?: OnDuplicates | undefined;
}

/** Parses a patch body; only apply patches may be YAML. */
export function parsePatch(bytes: Buffer, reading: PatchReading = {}): unknown {
  const { messagePrefix = 'error decoding patch: ', kind = '', onDuplicates } = reading;
  const text = bytes.toString('utf8');
  try {
    return parseRequestJson(
      text,
      onDuplicates && { bytes, mayHaveDuplicates: () => report(patchDuplicates(text, kind), onDuplicates) },
    );
  } catch (error) {
    if (error instanceof NestingError) throw badRequest(messagePrefix + error.message);
    if (error instanceof ValueCountError) throw tooManyValues(error);
    if (!(error instanceof SyntaxError)) throw error;
    throw badRequest(messagePrefix + describeJsonError(bytes, error));
  }
}

/** Returns Go's message if Go would also reject the text. */
function describeJsonError(bytes: Buffer, error: Error): string {
  return findGoJsonError(bytes) ?? error.message;
}

export function parseYamlText(text: string, onDuplicates?: OnDuplicates): unknown {
  // A round trip through JSON converts YAML's own types, copies what aliases share, and bounds the nesting.
  return parseRequestJson(JSON.stringify(parseYamlValue(text, onDuplicates) ?? null));
}

function parseYamlValue(text: string, onDuplicates: OnDuplicates | undefined): unknown {
  if (onDuplicates === undefined) return parseYaml(text, { maxSeparators: MAX_YAML_SEPARATORS });
  const { value, duplicates } = parseYamlWithDuplicates(text);
  if (duplicates !== undefined) onDuplicates(yamlDuplicates(duplicates));
  return value;
}
