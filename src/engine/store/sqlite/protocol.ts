/** The messages between the main thread and the store's worker. Each request gets one reply, in order. */

export type Request =
  | { readonly kind: 'open' }
  /** Reads the next chunk of the log. */
  | { readonly kind: 'read' }
  /**
   * Appends the first `length` bytes of `packed`, or of the shared block if `packed` is absent (transferring a block
   * each time is slow). The worker owns them until the reply. `after` and `last` are those of LogWriter.append.
   */
  | {
      readonly kind: 'append';
      readonly length: number;
      readonly after: number;
      readonly last: number;
      readonly packed?: SharedArrayBuffer;
    }
  | { readonly kind: 'compact'; readonly revision: number; readonly removable: Float64Array }
  /** For tests: limits the file to this many pages; 0 = no limit. */
  | { readonly kind: 'limit'; readonly pages: number }
  /** Copies the current log into an empty file. */
  | { readonly kind: 'copy'; readonly to: string }
  | { readonly kind: 'close' };

export type Reply =
  | { readonly kind: 'opened'; readonly compactedRevision: number }
  /**
   * `length` bytes of `packed`, or of the shared block if `packed` is absent. The main thread owns them until the next
   * but one chunk.
   */
  | { readonly kind: 'chunk'; readonly offset: number; readonly length: number; readonly packed?: ArrayBuffer }
  /** There are no more chunks; the file is now open for writing. */
  | { readonly kind: 'end' }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly why: FailureKind; readonly message: string };

/** `full`: the disk is full. */
type FailureKind = 'damaged' | 'full' | 'unavailable';

export interface WorkerSetup {
  readonly file: string;
  readonly shared: SharedArrayBuffer;
}
