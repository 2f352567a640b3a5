/**
 * The client: what every part above the API uses, over HTTPS or inside this process. Reader and Writer are apart,
 * so that a signature says whether a function may write.
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
  /** Reads the line of an event where not all of it is wanted; as JSON, unless told otherwise. */
  readonly readLine?: (line: string) => unknown;
}

export interface Reader {
  /** Throws ApiError NotFound. */
  get<T extends KubeObject>(type: ResourceType<T>, name: ObjectName, options?: CallOptions): Promise<Stored<T>>;
  /** One page. `listAll` in paged-list.ts walks the pages. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<KubeList<Stored<T>>>;
  /** Ends when the server ends it; throws what breaks it. ERROR events are thrown as ApiError. */
  watch<T extends KubeObject>(type: ResourceType<T>, options?: WatchOptions): AsyncIterable<WatchEvent<Stored<T>>>;
}

export interface WriteOptions extends CallOptions {
  readonly dryRun?: boolean;
  readonly fieldManager?: string;
  readonly subresource?: string;
  /** With an `apply` patch: takes fields over from other managers. */
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
  /** Server-side apply: the configuration is all that this manager wants to say of the object, which is made if need be. */
  apply<T extends KubeObject>(type: ResourceType<T>, config: T, options: ApplyOptions): Promise<Stored<T>>;
  /** Resolves also where finalizers hold the object. */
  delete(type: ResourceType, name: ObjectName, options?: DeleteOptions): Promise<void>;
  deleteCollection(
    type: ResourceType,
    options?: DeleteOptions & Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>,
  ): Promise<void>;
}

export interface Client extends Reader, Writer {}
