/** Every bound of the API in one place. */

/** kube-apiserver's own limit on a request body. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;
export const MAX_DEPTH = 256;
export const MAX_YAML_ALIASES = 100;
/** etcd's limit on one stored object, which clients rely on. */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;
/** Attempts of a read-modify-write that other writers keep overtaking. */
export const MAX_WRITE_ATTEMPTS = 8;
/** Attempts to find a free name for generateName. */
export const MAX_NAME_ATTEMPTS = 8;
/** A watcher that leaves more than this unread is cut off; it may resume from its last revision. */
export const MAX_WATCH_BUFFER_BYTES = 16 * 1024 * 1024;
/** How long a read waits for a resourceVersion that is not there yet. */
export const FUTURE_REVISION_WAIT_MS = 3000;
/** Watches without timeoutSeconds end after 30 to 60 minutes, so that clients spread over servers. */
export const WATCH_TIMEOUT_SECONDS = 1800;
export const BOOKMARK_INTERVAL_MS = 60_000;
export const MAX_HEADER_BYTES = 64 * 1024;
