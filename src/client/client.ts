/**
 * The interface of clients of the API, over HTTPS or inside this process. Reader and Writer are separate, so that a
 * signature shows whether a function may write.
 */
import type { KubeList, KubeObject, ResourceType, Stored, WatchEvent } from '#kube/meta.ts';

export interface ObjectName {
  readonly namespace?: string;
  readonly name: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface ListOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  readonly limit?: number;
  readonly continue?: string;
}

export interface WatchOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion?: string;
  readonly allowWatchBookmarks?: boolean;
  readonly sendInitialEvents?: boolean;
  readonly timeoutSeconds?: number;
  /** Parses the line of an event, if only a part of it is needed. Default: JSON.parse. */
  readonly readLine?: (line: string) => unknown;
}

export interface Reader {
  /** Throws ApiError NotFound. */
  get<T extends KubeObject>(type: ResourceType<T>, name: ObjectName, options?: CallOptions): Promise<Stored<T>>;
  /** Returns one page. `listAll` in paged-list.ts reads all pages. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<KubeList<Stored<T>>>;
  /** Ends when the server ends it; throws if it breaks. ERROR events are thrown as ApiError. */
  watch<T extends KubeObject>(type: ResourceType<T>, options?: WatchOptions): AsyncIterable<WatchEvent<Stored<T>>>;
}

export interface WriteOptions extends CallOptions {
  readonly dryRun?: boolean;
  readonly fieldManager?: string;
  readonly subresource?: string;
  /** With an `apply` patch: takes over fields from other managers. */
  readonly force?: boolean;
}

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

export interface DeleteOptions extends CallOptions {
  readonly dryRun?: boolean;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
}

export interface Writer {
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  update<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    name: ObjectName,
    patch: { type: PatchType; body: unknown },
    options?: WriteOptions,
  ): Promise<Stored<T>>;
  /** Server-side apply: sets exactly the fields that this manager owns. Creates the object if it does not exist. */
  apply<T extends KubeObject>(type: ResourceType<T>, config: T, options: ApplyOptions): Promise<Stored<T>>;
  /** Resolves even if finalizers still keep the object. */
  delete(type: ResourceType, name: ObjectName, options?: DeleteOptions): Promise<void>;
  deleteCollection(
    type: ResourceType,
    options?: DeleteOptions & Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>,
  ): Promise<void>;
}

export interface Client extends Reader, Writer {}
