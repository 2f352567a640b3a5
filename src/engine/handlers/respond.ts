/** Answers in the representation that was asked for: JSON as stored, YAML, Table or metadata only. */
import { encodeJson, encodeYaml, JSON_TYPE, YAML_TYPE } from '#engine/codec.ts';
import { FORM_SLICE, nextTurn } from '#engine/conversion/stored-form.ts';
import { decodeEntry, readable, shownBytes, type Call } from '#engine/handlers/call.ts';
import type { ApiResponse, BytesResponse } from '#engine/request.ts';
import type { Entry } from '#engine/store/store.ts';
import { partialMetadata, partialMetadataList } from '#engine/tables/partial-metadata.ts';
import { ACCEPTED_TYPES, type Representation } from '#engine/tables/negotiate-representation.ts';
import { parseIncludeObject, tableOf, type TableOptions } from '#engine/tables/table.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { unreachable } from '#lib/invariant.ts';
import { notAcceptable, type Status } from '#kube/api-error.ts';
import { apiVersionOf, type KubeObject, type ListMeta } from '#kube/meta.ts';

export interface Answer {
  readonly status: number;
  readonly warnings?: readonly string[] | undefined;
}

/** One stored object; as JSON its bytes go out as they are. A promise where it must be converted first. */
export function respondEntry(call: Call, entry: Entry, answer: Answer): ApiResponse | Promise<ApiResponse> {
  const reading = readable(call, [entry]);
  return reading === undefined
    ? respondRead(call, entry, answer)
    : reading.then(() => respondRead(call, entry, answer));
}

function respondRead(call: Call, entry: Entry, answer: Answer): ApiResponse {
  const { resource } = call.served;
  if (call.representation.kind === 'json') {
    return { ...answer, contentType: JSON_TYPE, body: shownBytes(entry, resource) };
  }
  return respondObject(call, decodeEntry(entry, resource), answer);
}

export function respondObject(call: Call, object: KubeObject, answer: Answer): ApiResponse {
  const { representation } = call;
  if (representation.list) throw notAcceptable(ACCEPTED_TYPES);
  return encoded(representation, answer, represented(call, object));
}

function represented(call: Call, object: KubeObject): unknown {
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

function encoded({ encoding }: Representation, answer: Answer, value: unknown): ApiResponse {
  return encoding === 'yaml'
    ? { ...answer, contentType: YAML_TYPE, body: encodeYaml(value) }
    : { ...answer, contentType: JSON_TYPE, body: encodeJson(value) };
}

const COMMA = Buffer.from(',');
const LIST_END = Buffer.from(']}');

export async function respondList(call: Call, entries: readonly Entry[], listMeta: ListMeta): Promise<ApiResponse> {
  const { resource } = call.served;
  const { representation } = call;
  const reading = readable(call, entries);
  if (reading !== undefined) await reading;
  if (representation.kind === 'json') {
    return { status: 200, contentType: JSON_TYPE, body: await listBytes(resource, entries, listMeta) };
  }
  if (representation.kind === 'partial' && !representation.list) throw notAcceptable(ACCEPTED_TYPES);
  return encoded(representation, { status: 200 }, representedList(call, entries, listMeta));
}

function representedList(call: Call, entries: readonly Entry[], listMeta: ListMeta): unknown {
  const { representation } = call;
  const { resource } = call.served;
  const objects = entries.map((entry) => decodeEntry(entry, resource));
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

/** The list around bytes that exist already; where they must be made, others get their turn between them. */
async function listBytes(resource: Resource, entries: readonly Entry[], listMeta: ListMeta): Promise<Buffer[]> {
  const makes = resource.stored?.isMadeEachTime === true;
  const head = JSON.stringify(listHead(resource, listMeta));
  const pieces: Buffer[] = [Buffer.from(`${head.slice(0, -1)},"items":[`)];
  for (let i = 0; i < entries.length; i++) {
    if (makes && i % FORM_SLICE === FORM_SLICE - 1) await nextTurn();
    if (i > 0) pieces.push(COMMA);
    pieces.push(shownBytes(entries[i]!, resource));
  }
  pieces.push(LIST_END);
  return pieces;
}

export function respondStatus(status: Status): BytesResponse {
  return { status: status.code ?? 200, contentType: JSON_TYPE, body: encodeJson(status) };
}
