/**
 * The interface through which a kind reads and writes its stored objects in one of its versions. conversion/ implements it
 * for custom kinds; built-in kinds are served as stored and have none.
 */
import type { CompiledSchema } from '#engine/registry/structural/compile.ts';
import type { Entry } from '#engine/store/store.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Number of objects that are converted without yielding. */
export const FORM_SLICE = 100;

/** Converts objects between versions that differ in more than apiVersion. */
export interface ObjectConverter {
  /** Converts objects and keeps their order. Does not modify them. Rejects with an ApiError. */
  convert(objects: readonly KubeObject[], apiVersion: string, signal: AbortSignal): Promise<KubeObject[]>;
}

export interface StoredForm {
  /** True if each reader converts it again, which takes long for many objects. */
  readonly convertsOnEachRead: boolean;
  /** Undefined if the versions differ only in apiVersion. */
  readonly webhook: ObjectConverter | undefined;
  /** Returns the schema of a version, compiled once for all versions of the kind, or undefined if it does not exist. */
  schemaOf(version: string): CompiledSchema | undefined;
  /** Returns the JSON of an entry. If `prepare` is required, it must have completed. */
  bytes(entry: Entry): Buffer;
  /** Like `bytes`; undefined = a webhook must be called first. */
  peek(entry: Entry): Buffer | undefined;
  /** Returns undefined if there is nothing to wait for. Rejects with an ApiError. */
  prepare(entries: readonly Entry[], signal: () => AbortSignal): Promise<void> | undefined;
  /** Converts an object of this version to the storage version; returns it unchanged if that is the same. */
  toStorage(object: KubeObject, signal: () => AbortSignal): KubeObject | Promise<KubeObject>;
  /** Reports whether an entry has its current form; if not, an update without changes still writes it. */
  isCurrent(entry: Entry): boolean;
}
