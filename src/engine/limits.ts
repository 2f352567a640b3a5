/** Every bound of the API in one place. */

/** kube-apiserver's own limit on a request body. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;
export const MAX_DEPTH = 256;
/** YAML takes a thousand times as long to parse as JSON. */
export const MAX_YAML_BYTES = 256 * 1024;
/** etcd's limit on one stored object, which clients rely on. */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;
/** Attempts of a read-modify-write that other writers keep overtaking. */
export const MAX_WRITE_ATTEMPTS = 8;
/** Attempts to find a free name for generateName. */
export const MAX_NAME_ATTEMPTS = 8;
/** A watcher that leaves more than this unread is cut off; it may resume from its last revision. */
export const MAX_WATCH_BUFFER_BYTES = 16 * 1024 * 1024;
/** What is sent ahead of a watcher's reading: its initial list comes in pieces of this size. */
export const WATCH_PIECE_BYTES = 1024 * 1024;
/** How long a watcher that was cut off may still read what it was sent. */
export const WATCH_LINGER_MS = 5000;
/** How long a read waits for a resourceVersion that is not there yet. */
export const FUTURE_REVISION_WAIT_MS = 3000;
/** Watches without timeoutSeconds end after a random time between half of this and all of it. */
export const WATCH_TIMEOUT_MS = 60 * 60 * 1000;
export const BOOKMARK_INTERVAL_MS = 60_000;
export const MAX_HEADER_BYTES = 64 * 1024;
