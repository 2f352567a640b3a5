/** Small enough that a compaction runs whenever the process is killed. */
export const KILL_OPTIONS = { maxHistoryEvents: 500 };
