/** Small enough that compaction is under way whenever the process is killed. */
export const KILL_OPTIONS = { maxHistoryEvents: 500 };
