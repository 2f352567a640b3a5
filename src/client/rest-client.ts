/** The Client over any transport: kinds become paths, options become queries and bodies. */
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
import { noteRead } from '#client/read-scope.ts';
import { collectionPath, objectPath, requireNamespace } from '#client/resource-path.ts';
import { LIST_ANSWER_BYTES, TransportError } from '#client/transport.ts';
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
  /** Gets the warnings that the server sends with an answer. */
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
      noteRead(type);
      return sendForObject<T>({ method: 'GET', path: objectPath(type, name), signal });
    },

    async list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}) {
      noteRead(type);
      const { namespace, signal } = options;
      const path = collectionPath(type, namespace);
      const query = listQuery(options);
      const request = { method: 'GET', path, query, maxAnswerBytes: LIST_ANSWER_BYTES, signal } as const;
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
      return sendForObject<T>({ method: 'POST', path, ...written(object, options) });
    },

    update<T extends KubeObject>(type: ResourceType<T>, object: T, options: WriteOptions = {}) {
      const { name = '', namespace } = object.metadata;
      const path = objectPath(type, { namespace, name, subresource: options.subresource });
      return sendForObject<T>({ method: 'PUT', path, ...written(object, options) });
    },

    patch<T extends KubeObject>(
      type: ResourceType<T>,
      name: ObjectName,
      patch: { type: PatchType; body: unknown },
      options: WriteOptions = {},
    ) {
      const path = objectPath(type, { ...name, subresource: options.subresource });
      const contentType = PATCH_CONTENT_TYPES[patch.type];
      return sendForObject<T>({ method: 'PATCH', path, ...written(patch.body, options), contentType });
    },

    apply<T extends KubeObject>(type: ResourceType<T>, config: T, options: ApplyOptions) {
      const { name = '', namespace } = config.metadata;
      const path = objectPath(type, { namespace, name, subresource: options.subresource });
      const contentType = PATCH_CONTENT_TYPES.apply;
      return sendForObject<T>({ method: 'PATCH', path, ...written(config, options), contentType });
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
      const query = queryOf({ labelSelector, fieldSelector });
      await send({ method: 'DELETE', path, query, body: deleteBody(options), signal });
    },
  };
}

function written(body: unknown, { dryRun, fieldManager, force, signal }: WriteOptions) {
  const query = queryOf({ dryRun: dryRun ? 'All' : undefined, fieldManager, force });
  return { body, contentType: 'application/json', query, signal };
}

function listQuery(options: ListOptions): URLSearchParams {
  const { labelSelector, fieldSelector, resourceVersion, resourceVersionMatch, limit } = options;
  const page = { limit, continue: options.continue };
  return queryOf({ labelSelector, fieldSelector, resourceVersion, resourceVersionMatch, ...page });
}

function watchQuery(options: WatchOptions): URLSearchParams {
  const { labelSelector, fieldSelector, resourceVersion, allowWatchBookmarks, sendInitialEvents } = options;
  return queryOf({
    watch: true,
    labelSelector,
    fieldSelector,
    resourceVersion,
    allowWatchBookmarks,
    sendInitialEvents,
    // The API wants both or neither.
    resourceVersionMatch: sendInitialEvents === undefined ? undefined : 'NotOlderThan',
    timeoutSeconds: options.timeoutSeconds,
  });
}

function queryOf(values: Record<string, string | number | boolean | undefined>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query;
}

function deleteBody(options: DeleteOptions) {
  const { uid, resourceVersion, gracePeriodSeconds, propagationPolicy, dryRun } = options;
  const guarded = uid !== undefined || resourceVersion !== undefined;
  return {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    ...(guarded ? { preconditions: { uid, resourceVersion } } : {}),
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
    if (!isRecord(line) || !isRecord(line['object'])) throw unexpected(request, 'a watch event');
    const object = line['object'];
    if (line['type'] === 'ERROR') throw ApiError.fromStatus(object, 500);
    yield { type: line['type'] as WatchEvent['type'], object: withKind(type, expectObject<T>(object, request)) };
  }
}

function expectObject<T extends KubeObject>(body: unknown, request: TransportRequest): Stored<T> {
  if (!isRecord(body) || !isRecord(body['metadata'])) throw unexpected(request, 'an object');
  return body as unknown as Stored<T>;
}

function expectList<T extends KubeObject>(
  type: ResourceType<T>,
  body: unknown,
  request: TransportRequest,
): KubeList<Stored<T>> {
  if (!isRecord(body) || !isRecord(body['metadata'])) throw unexpected(request, 'a list');
  const list = body as unknown as KubeList<Stored<T>>;
  // An empty list of a Go server may be null.
  list.items ??= [];
  for (const item of list.items) withKind(type, expectObject<T>(item, request));
  return list;
}

/** kube-apiserver leaves apiVersion and kind out of the items of built-in lists. */
function withKind<T extends KubeObject>(type: ResourceType<T>, object: Stored<T>): Stored<T> {
  const named: KubeObject = object;
  named.apiVersion ??= apiVersionOf(type);
  named.kind ??= type.kind;
  return object;
}

function unexpected({ method, path }: TransportRequest, what: string): TransportError {
  return new TransportError(`Cannot read the answer to ${method} ${path}: it is not ${what}`);
}
