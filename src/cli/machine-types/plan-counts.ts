/** How many VMs of a plan are in which state, and how that is shown. Pure. */
import { ENTRY_STATES, type EntryState } from '#api/machine-types/plan.ts';

const WORDS: Readonly<Record<EntryState, string>> = {
  pending: 'pending',
  updated: 'updated',
  restartRequired: 'restart required',
  restarting: 'restarting',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
};

export const stateText = (state: EntryState) => WORDS[state];

/** Nothing more happens to these. */
export function isOver(state: EntryState): boolean {
  return state === 'done' || state === 'failed' || state === 'skipped';
}

export type Counts = ReadonlyMap<EntryState, number>;

/** All states; those of nobody are 0. */
export function countStates(states: Iterable<EntryState>): Counts {
  const counts = new Map<EntryState, number>(ENTRY_STATES.map((state) => [state, 0]));
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}

export function countOver(counts: Counts): number {
  return [...counts].reduce((sum, [state, count]) => (isOver(state) ? sum + count : sum), 0);
}

/** `3 done, 1 failed`. */
export function countsText(counts: Counts): string {
  const parts = [...counts].filter(([, count]) => count > 0).map(([state, count]) => `${count} ${WORDS[state]}`);
  return parts.length === 0 ? 'no VM' : parts.join(', ');
}

const BAR_WIDTH = 24;

/** `[############............] 6/12: 4 pending, 2 restarting, 6 done`. */
export function progressBar(total: number, counts: Counts): string {
  const over = countOver(counts);
  // Rounded down: full means that there is nothing left to do.
  const filled = total === 0 ? BAR_WIDTH : Math.floor((BAR_WIDTH * over) / total);
  return `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] ${over}/${total}: ${countsText(counts)}`;
}
