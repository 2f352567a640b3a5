/** The Client over any transport: turns kinds into paths, and options into queries and bodies. */
import type {
  ApplyOptions,
  CallOptions,
  Client,
  DeleteOptions,
  ListOptions,
  ObjectName,
  PatchType,
  WatchOptions,
  WriteOptions,
} from '#client/client.ts';
import { recordRead } from '#client/read-scope.ts';
import { collectionPath, objectPath, requireNamespace } from '#client/resource-path.ts';
import { LIST_RESPONSE_BYTES, TransportError } from '#client/transport.ts';
import type { Transport, TransportRequest, TransportResponse } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import { apiVersionOf, isRecord } from '#kube/meta.ts';
import type { KubeList, KubeObject, ResourceType, Stored, WatchEvent } from '#kube/meta.ts';

const PATCH_CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

export interface RestClientOptions {
  /** Receives the warnings that the server sends with a response. */
  readonly onWarning?: (warning: string) => void;
}

export function createClient(transport: Transport, { onWarning }: RestClientOptions = {}): Client {
  async function send(request: TransportRequest): Promise<unknown> {
    const { body, warnings }: TransportResponse = await transport.request(request);
    if (onWarning !== undefined) for (const warning of warnings) onWarning(warning);
    return body;
  }

  async function sendForObject<T extends KubeObject>(request: TransportRequest): Promise<Stored<T>> {
    return expectObject<T>(await send(request), request);
  }

  return {
    get<T extends KubeObject>(type: ResourceType<T>, name: ObjectName, { signal }: CallOptions = {}) {
      recordRead(type);
      return sendForObject<T>({ method: 'GET', path: objectPath(type, name), signal });
    },

    async list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}) {
      recordRead(type);
      const { namespace, signal } = options;
      const path = collectionPath(type, namespace);
      const query = listQuery(options);
      const request: TransportRequest = { method: 'GET', path, query, maxResponseBytes: LIST_RESPONSE_BYTES, signal };
      return expectList<T>(type, await send(request), request);
    },

    watch<T extends KubeObject>(type: ResourceType<T>, options: WatchOptions = {}) {
      const { namespace, readLine, signal } = options;
      const path = collectionPath(type, namespace);
      const request = { method: 'GET', path, query: watchQuery(options), readLine, signal } as const;
      return watchEvents<T>(type, transport.stream(request), request);
    },

    create<T extends KubeObject>(type: ResourceType<T>, object: T, options: WriteOptions = {}) {
      const { name, namespace } = object.metadata;
      const path =
        options.subresource === undefined
          ? collectionPath(type, requireNamespace(type, namespace))
          : objectPath(type, { namespace, name: name ?? '', subresource: options.subresource });
      return sendForObject<T>({ method: 'POST', path, ...writeParts(object, options) });
    },

    update<T extends KubeObject>(type: ResourceType<T>, object: T, options: WriteOptions = {}) {
      const { name = '', namespace } = object.metadata;
      const path = objectPath(type, { namespace, name, subresource: options.subresource });
      return sendForObject<T>({ method: 'PUT', path, ...writeParts(object, options) });
    },

    patch<T extends KubeObject>(
      type: ResourceType<T>,
      name: ObjectName,
      patch: { type: PatchType; body: unknown },
      options: WriteOptions = {},
    ) {
      const path = objectPath(type, { ...name, subresource: options.subresource });
      const contentType = PATCH_CONTENT_TYPES[patch.type];
      return sendForObject<T>({ method: 'PATCH', path, ...writeParts(patch.body, options), contentType });
    },

    apply<T extends KubeObject>(type: ResourceType<T>, config: T, options: ApplyOptions) {
      const { name = '', namespace } = config.metadata;
      const path = objectPath(type, { namespace, name, subresource: options.subresource });
      const contentType = PATCH_CONTENT_TYPES.apply;
      return sendForObject<T>({ method: 'PATCH', path, ...writeParts(config, options), contentType });
    },

    async delete(type: ResourceType, name: ObjectName, options: DeleteOptions = {}) {
      const { signal } = options;
      await send({ method: 'DELETE', path: objectPath(type, name), body: deleteBody(options), signal });
    },

    async deleteCollection(
      type: ResourceType,
      options: DeleteOptions & Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'> = {},
    ) {
      const { namespace, labelSelector, fieldSelector, signal } = options;
      const path = collectionPath(type, requireNamespace(type, namespace));
      const query = buildQuery({ labelSelector, fieldSelector });
      await send({ method: 'DELETE', path, query, body: deleteBody(options), signal });
    },
  };
}

function writeParts(body: unknown, { dryRun, fieldManager, force, signal }: WriteOptions) {
  const query = buildQuery({ dryRun: dryRun ? 'All' : undefined, fieldManager, force });
  return { body, contentType: 'application/json', query, signal };
}

function listQuery(options: ListOptions): URLSearchParams {
  const { labelSelector, fieldSelector, resourceVersion, resourceVersionMatch, limit } = options;
  const page = { limit, continue: options.continue };
  return buildQuery({ labelSelector, fieldSelector, resourceVersion, resourceVersionMatch, ...page });
}

function watchQuery(options: WatchOptions): URLSearchParams {
  const { labelSelector, fieldSelector, resourceVersion, allowWatchBookmarks, sendInitialEvents } = options;
  return buildQuery({
    watch: true,
    labelSelector,
    fieldSelector,
    resourceVersion,
    allowWatchBookmarks,
    sendInitialEvents,
    // The API requires both or neither.
    resourceVersionMatch: sendInitialEvents === undefined ? undefined : 'NotOlderThan',
    timeoutSeconds: options.timeoutSeconds,
  });
}

function buildQuery(values: Record<string, string | number | boolean | undefined>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query;
}

function deleteBody(options: DeleteOptions) {
  const { uid, resourceVersion, gracePeriodSeconds, propagationPolicy, dryRun } = options;
  const hasPreconditions = uid !== undefined || resourceVersion !== undefined;
  return {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    ...(hasPreconditions ? { preconditions: { uid, resourceVersion } } : {}),
    gracePeriodSeconds,
    propagationPolicy,
    ...(dryRun ? { dryRun: ['All'] } : {}),
  };
}

async function* watchEvents<T extends KubeObject>(
  type: ResourceType<T>,
  lines: AsyncIterable<unknown>,
  request: TransportRequest,
): AsyncGenerator<WatchEvent<Stored<T>>, void, undefined> {
  for await (const line of lines) {
    if (!isRecord(line) || !isRecord(line['object'])) throw unexpectedResponse(request, 'a watch event');
    const object = line['object'];
    if (line['type'] === 'ERROR') throw ApiError.fromStatus(object, 500);
    yield { type: line['type'] as WatchEvent['type'], object: addKind(type, expectObject<T>(object, request)) };
  }
}

function expectObject<T extends KubeObject>(body: unknown, request: TransportRequest): Stored<T> {
  if (!isRecord(body) || !isRecord(body['metadata'])) throw unexpectedResponse(request, 'an object');
  return body as unknown as Stored<T>;
}

function expectList<T extends KubeObject>(
  type: ResourceType<T>,
  body: unknown,
  request: TransportRequest,
): KubeList<Stored<T>> {
  if (!isRecord(body) || !isRecord(body['metadata'])) throw unexpectedResponse(request, 'a list');
  const list = body as unknown as KubeList<Stored<T>>;
  // A Go server may send null for an empty list.
  list.items ??= [];
  for (const item of list.items) addKind(type, expectObject<T>(item, request));
  return list;
}

/** Adds apiVersion and kind, which kube-apiserver omits from the items of built-in lists. */
function addKind<T extends KubeObject>(type: ResourceType<T>, object: Stored<T>): Stored<T> {
  const target: KubeObject = object;
  target.apiVersion ??= apiVersionOf(type);
  target.kind ??= type.kind;
  return object;
}

function unexpectedResponse({ method, path }: TransportRequest, what: string): TransportError {
  return new TransportError(`Cannot read the response to ${method} ${path}: it is not ${what}`);
}
