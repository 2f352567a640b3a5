/**
 * Bytes to objects and back. Bodies are untrusted (json.ts bounds them); YAML is limited in size and aliases, because
 * it is slow to parse. Stored bytes are our own and are parsed plainly.
 */
import { LineCounter, stringify as stringifyYaml } from 'yaml';
import { type ApiError, badRequest, tooLarge, unsupportedMediaType } from '#kube/api-error.ts';
import { goJsonFault } from '#kube/go-json-fault.ts';
import type { KubeObject } from '#kube/meta.ts';
import { parseYamlDocument, yamlValue } from '#kube/yaml.ts';
import { NestingError, parseJson } from '#engine/json.ts';
import { MAX_YAML_BYTES } from '#engine/limits.ts';
import { parseStored, storedText } from '#engine/managed-fields/stored-owners.ts';
import { decodeProtobuf } from '#engine/protobuf/decode-protobuf.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';
import { jsonRepeats, patchRepeats, yamlRepeats, type Repeats } from '#engine/strict-faults.ts';
import { repeatedKeys } from '#engine/yaml-repeats.ts';

export const JSON_TYPE = 'application/json';
export const YAML_TYPE = 'application/yaml';
const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

export function decodeStored(bytes: Buffer): KubeObject {
  return parseStored(bytes.toString('utf8'));
}

/** The bytes under which an object is stored and served: this revision is its resourceVersion. */
export function encodeStored(object: KubeObject, revision: number): Buffer {
  object.metadata.resourceVersion = String(revision);
  const text = storedText(object);
  // Of its own, not from the shared pool: it is kept for as long as the object lives.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

export function encodeYaml(value: unknown): Buffer {
  return Buffer.from(stringifyYaml(value, { aliasDuplicateObjects: false }));
}

/** `application/json; charset=utf-8` → `application/json`. */
export function mediaType(contentType: string): string {
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}

/** What a body is meant to be, for the error that says it is not. */
export interface ExpectedBody {
  readonly kind: string;
  /** Custom kinds have no protobuf form. */
  readonly builtIn: boolean;
}

/** Hears of fields that a body has twice. Who does not ask saves the time to look for them. */
export type OnRepeats = (repeats: Repeats) => void;

/** Parses the body of a create, update or delete. No Content-Type means JSON, as kube-apiserver has it. */
export function parseBody(bytes: Buffer, contentType: string, expected: ExpectedBody, onRepeats?: OnRepeats): unknown {
  const type = mediaType(contentType);
  const accepted = expected.builtIn ? [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE] : [JSON_TYPE, YAML_TYPE];
  if (type !== '' && !accepted.includes(type)) throw unsupportedMediaType(accepted);
  if (type === PROTOBUF_TYPE) return parseProtobuf(bytes, expected.kind);
  if (type === YAML_TYPE && bytes.length > MAX_YAML_BYTES) throw tooLarge(YAML_TOO_LARGE);
  const text = bytes.toString('utf8');
  try {
    if (type === YAML_TYPE) return parseYamlText(text, onRepeats);
    return parseJson(text, onRepeats && { bytes, mayRepeat: () => tell(jsonRepeats(text, expected), onRepeats) });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error instanceof NestingError) throw badRequest(`the object provided is ${error.message}`);
    const shown = text.length > 1000 ? `${text.slice(0, 1000)}...` : text;
    const why =
      type === YAML_TYPE ? `yaml parse error: ${error.message}` : `json parse error: ${jsonFault(bytes, error)}`;
    throw unrecognized(expected.kind, `${why} (${shown})`);
  }
}

function tell(repeats: Repeats | undefined, onRepeats: OnRepeats): void {
  if (repeats !== undefined) onRepeats(repeats);
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

const YAML_TOO_LARGE = `Request entity too large: limit is ${MAX_YAML_BYTES} for YAML; send JSON instead`;

export interface PatchReading {
  /** Comes before the words for what is wrong with the text. */
  readonly doing?: string;
  /** Comes before what is there twice. */
  readonly kind?: string;
  readonly onRepeats?: OnRepeats | undefined;
}

/** Parses a patch body: YAML is for apply patches only. */
export function parsePatch(bytes: Buffer, reading: PatchReading = {}): unknown {
  const { doing = 'error decoding patch: ', kind = '', onRepeats } = reading;
  const text = bytes.toString('utf8');
  try {
    return parseJson(text, onRepeats && { bytes, mayRepeat: () => tell(patchRepeats(text, kind), onRepeats) });
  } catch (error) {
    if (error instanceof NestingError) throw badRequest(doing + error.message);
    if (!(error instanceof SyntaxError)) throw error;
    throw badRequest(doing + jsonFault(bytes, error));
  }
}

/** The words of Go, wherever it would refuse the text, too. */
function jsonFault(bytes: Buffer, error: Error): string {
  return goJsonFault(bytes) ?? error.message;
}

export function parseYamlText(text: string, onRepeats?: OnRepeats): unknown {
  const lines = onRepeats && new LineCounter();
  const document = parseYamlDocument(text, lines);
  const repeated = lines && repeatedKeys(document, lines);
  if (repeated !== undefined) onRepeats?.(yamlRepeats(repeated));
  const value: unknown = yamlValue(document);
  // One trip through JSON makes YAML's own types plain and drops prototype keys.
  return parseJson(JSON.stringify(value ?? null));
}
