/** Responds in the requested representation: JSON as stored, YAML, Table or metadata only. */
import { encodeJson, encodeYaml, JSON_TYPE, YAML_TYPE } from '#engine/encoding/media-types.ts';
import { FORM_SLICE } from '#engine/registry/stored-form.ts';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { decodeEntry, prepareEntries, servedBytes, type Call } from '#engine/handlers/call.ts';
import type { ApiResponse, BytesResponse } from '#engine/request/request.ts';
import type { Entry } from '#engine/store/store.ts';
import { partialMetadata, partialMetadataList } from '#engine/tables/partial-metadata.ts';
import { ACCEPTED_TYPES, type Representation } from '#engine/tables/negotiate-representation.ts';
import { parseIncludeObject, tableOf, type TableOptions } from '#engine/tables/table.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { unreachable } from '#lib/invariant.ts';
import { notAcceptable, type Status } from '#kube/api-error.ts';
import { apiVersionOf, type KubeObject, type ListMeta } from '#kube/meta.ts';

interface ResponseOptions {
  readonly status: number;
  readonly warnings?: readonly string[] | undefined;
}

/**
 * Responds with one stored object; as JSON, its bytes are sent unchanged. Returns a promise if it must be converted
 * first, or if its representation must wait for a turn.
 */
export function respondEntry(call: Call, entry: Entry, options: ResponseOptions): ApiResponse | Promise<ApiResponse> {
  const reading = prepareEntries(call, [entry]);
  const turn = call.representation.kind === 'json' && !convertsOnRead(call) ? undefined : turnFor(call, entry);
  if (reading === undefined && turn === undefined) return respondRead(call, entry, options);
  return Promise.all([reading, turn]).then(() => respondRead(call, entry, options));
}

const convertsOnRead = ({ served }: Call) => served.resource.stored?.convertsOnEachRead === true;

/** Returns a promise for the turn in which an object may be decoded and encoded; undefined = at once. */
function turnFor({ pace }: Call, { bytes }: Entry): Promise<void> | undefined {
  return pace.spend(bytes.length);
}

function respondRead(call: Call, entry: Entry, options: ResponseOptions): ApiResponse {
  const { resource } = call.served;
  if (call.representation.kind === 'json') {
    return { ...options, contentType: JSON_TYPE, body: servedBytes(entry, resource) };
  }
  return respondObject(call, decodeEntry(entry, resource), options);
}

export function respondObject(call: Call, object: KubeObject, options: ResponseOptions): ApiResponse {
  const { representation } = call;
  if (representation.list) throw notAcceptable(ACCEPTED_TYPES);
  return encode(representation, options, represent(call, object));
}

function represent(call: Call, object: KubeObject): unknown {
  const { representation, served } = call;
  switch (representation.kind) {
    case 'json':
    case 'yaml':
      return object;
    case 'partial':
      return partialMetadata(object, representation.version);
    case 'table':
      return tableOf(
        served.resource,
        [object],
        tableOptions(call, { resourceVersion: object.metadata.resourceVersion ?? '' }),
      );
    default:
      return unreachable(representation.kind);
  }
}

export function tableOptions(call: Call, listMeta: ListMeta): TableOptions {
  return {
    now: call.clock.now(),
    includeObject: parseIncludeObject(call.request.query.get('includeObject')),
    listMeta,
    version: call.representation.version,
  };
}

function encode({ encoding }: Representation, options: ResponseOptions, value: unknown): ApiResponse {
  return encoding === 'yaml'
    ? { ...options, contentType: YAML_TYPE, body: encodeYaml(value) }
    : { ...options, contentType: JSON_TYPE, body: encodeJson(value) };
}

const COMMA = Buffer.from(',');
const LIST_END = Buffer.from(']}');

export async function respondList(call: Call, entries: readonly Entry[], listMeta: ListMeta): Promise<ApiResponse> {
  const { resource } = call.served;
  const { representation } = call;
  const reading = prepareEntries(call, entries);
  if (reading !== undefined) await reading;
  if (representation.kind === 'json') {
    return { status: 200, contentType: JSON_TYPE, body: await listBytes(resource, entries, listMeta) };
  }
  if (representation.kind === 'partial' && !representation.list) throw notAcceptable(ACCEPTED_TYPES);
  const contentType = representation.encoding === 'yaml' ? YAML_TYPE : JSON_TYPE;
  if (representation.encoding === 'yaml' && isShort(entries)) {
    const turn = call.pace.spend(entries.reduce((sum, { bytes }) => sum + bytes.length, 0));
    if (turn !== undefined) await turn;
    const objects = entries.map((entry) => decodeEntry(entry, resource));
    return { status: 200, contentType, body: encodeYaml(representList(call, objects, listMeta)) };
  }
  // Long lists are sent as JSON, which is also YAML.
  const pieces =
    representation.kind === 'yaml' ? listBytes(resource, entries, listMeta) : itemPieces(call, entries, listMeta);
  return { status: 200, contentType, body: await pieces };
}

/** Reports whether a list can be encoded as a whole. */
function isShort(entries: readonly Entry[]): boolean {
  let bytes = 0;
  for (const entry of entries) if ((bytes += entry.bytes.length) > MAX_PIECE_BYTES) return false;
  return true;
}

const MAX_PIECE_BYTES = 64 * 1024;

/** Encodes a list item by item, in turns: a list may be very long. */
async function itemPieces(call: Call, entries: readonly Entry[], listMeta: ListMeta): Promise<Buffer[]> {
  const empty = JSON.stringify(representList(call, [], listMeta));
  const pieces: Buffer[] = [];
  // An empty list ends with `[]}`.
  let text = empty.slice(0, -LIST_END.length);
  for (const [index, entry] of entries.entries()) {
    const pause = call.pace.spend(entry.bytes.length);
    if (pause !== undefined) await pause;
    if (index > 0) text += ',';
    text += JSON.stringify(representItem(call, decodeEntry(entry, call.served.resource), listMeta));
    if (text.length < MAX_PIECE_BYTES) continue;
    pieces.push(Buffer.from(text));
    text = '';
  }
  pieces.push(Buffer.from(text), LIST_END);
  return pieces;
}

function representItem(call: Call, object: KubeObject, listMeta: ListMeta): unknown {
  if (call.representation.kind === 'partial') return partialMetadata(object, call.representation.version);
  return tableOf(call.served.resource, [object], tableOptions(call, listMeta)).rows[0];
}

function representList(call: Call, objects: readonly KubeObject[], listMeta: ListMeta): unknown {
  const { representation } = call;
  const { resource } = call.served;
  switch (representation.kind) {
    case 'json':
    case 'yaml':
      return { ...listHead(resource, listMeta), items: objects };
    case 'partial':
      return partialMetadataList(objects, listMeta, representation.version);
    case 'table':
      return tableOf(resource, objects, tableOptions(call, listMeta));
    default:
      return unreachable(representation.kind);
  }
}

function listHead(resource: Resource, metadata: ListMeta): object {
  return { kind: resource.listKind, apiVersion: apiVersionOf(resource), metadata };
}

/** Builds a list around existing bytes. If they must be converted, yields to other requests in between. */
async function listBytes(resource: Resource, entries: readonly Entry[], listMeta: ListMeta): Promise<Buffer[]> {
  const converts = resource.stored?.convertsOnEachRead === true;
  const head = JSON.stringify(listHead(resource, listMeta));
  const pieces: Buffer[] = [Buffer.from(`${head.slice(0, -1)},"items":[`)];
  for (let i = 0; i < entries.length; i++) {
    if (converts && i % FORM_SLICE === FORM_SLICE - 1) await nextTurn();
    if (i > 0) pieces.push(COMMA);
    pieces.push(servedBytes(entries[i]!, resource));
  }
  pieces.push(LIST_END);
  return pieces;
}

export function respondStatus(status: Status): BytesResponse {
  return { status: status.code ?? 200, contentType: JSON_TYPE, body: encodeJson(status) };
}
