/** What the main thread and the store's worker say to each other. Each request gets one reply, in order. */

export type Request =
  | { readonly kind: 'open' }
  /** The next chunk of the log. */
  | { readonly kind: 'read' }
  /**
   * The first `length` bytes of `packed`, or of the shared block where that is absent (sending a block anew is slow).
   * They are the worker's until the reply. `after` and `last` as LogWriter.append has them.
   */
  | {
      readonly kind: 'append';
      readonly length: number;
      readonly after: number;
      readonly last: number;
      readonly packed?: SharedArrayBuffer;
    }
  | { readonly kind: 'compact'; readonly revision: number; readonly removable: Float64Array }
  /** For tests: the file may not grow past so many pages; 0 = no limit. */
  | { readonly kind: 'limit'; readonly pages: number }
  /** A whole copy of the log as it is now, into an empty file. */
  | { readonly kind: 'copy'; readonly to: string }
  | { readonly kind: 'close' };

export type Reply =
  | { readonly kind: 'opened'; readonly compactedRevision: number }
  /** `length` bytes of `packed`, or of the shared block where that is absent; the main thread's until the chunk after next. */
  | { readonly kind: 'chunk'; readonly offset: number; readonly length: number; readonly packed?: ArrayBuffer }
  /** No chunk is left; the file is open for writing now. */
  | { readonly kind: 'end' }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly damaged: boolean; readonly message: string };

export interface WorkerSetup {
  readonly file: string;
  readonly shared: SharedArrayBuffer;
}
