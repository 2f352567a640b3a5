/** All limits of the API. */

/** kube-apiserver's limit for a request body. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;
export const MAX_OBJECT_DEPTH = 256;
/** Limit of the fields and list items of an object. It bounds the time of every step that reads or compares objects. */
export const MAX_OBJECT_VALUES = 50_000;
/** Limit of line breaks and separators of a YAML body. Parsing YAML takes several times as long as parsing JSON. */
export const MAX_YAML_SEPARATORS = 60_000;
/** etcd's limit for a stored object, on which clients rely. */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;
/** Attempts of a read-modify-write in case of concurrent writes. */
export const MAX_WRITE_ATTEMPTS = 8;
/** Attempts to find a free name for generateName. */
export const MAX_NAME_ATTEMPTS = 8;
/** A watcher that leaves more than this unread is cut off; it may resume from its last revision. */
export const MAX_WATCH_BUFFER_BYTES = 16 * 1024 * 1024;
/** Amount of data sent ahead of a watcher: its initial list is sent in pieces of this size. */
export const WATCH_PIECE_BYTES = 1024 * 1024;
/** Time that a watcher that was cut off has to read the data already sent. */
export const WATCH_LINGER_MS = 5000;
/** Time that a read waits for a future resourceVersion. */
export const FUTURE_REVISION_WAIT_MS = 3000;
/** Watches without timeoutSeconds end after a random time between half of this and all of it. */
export const WATCH_TIMEOUT_MS = 60 * 60 * 1000;
export const BOOKMARK_INTERVAL_MS = 60_000;
export const MAX_HEADER_BYTES = 64 * 1024;
