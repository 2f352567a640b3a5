/** Counts and renders the states of the VMs of a plan. Pure. */
import { ENTRY_STATES, type EntryState } from '#api/machine-types/plan.ts';

const STATE_TEXTS: Readonly<Record<EntryState, string>> = {
  pending: 'pending',
  updated: 'updated',
  restartRequired: 'restart required',
  restarting: 'restarting',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
};

export const stateText = (state: EntryState) => STATE_TEXTS[state];

/** Reports whether the Job is done with a VM in this state. */
export function isFinalState(state: EntryState): boolean {
  return state === 'done' || state === 'failed' || state === 'skipped';
}

type StateCounts = ReadonlyMap<EntryState, number>;

/** Counts the VMs in each state, including states with 0. */
export function countStates(states: Iterable<EntryState>): StateCounts {
  const counts = new Map<EntryState, number>(ENTRY_STATES.map((state) => [state, 0]));
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}

export function countFinal(counts: StateCounts): number {
  return [...counts].reduce((sum, [state, count]) => (isFinalState(state) ? sum + count : sum), 0);
}

/** Renders `3 done, 1 failed`. */
export function countsText(counts: StateCounts): string {
  const parts = [...counts].filter(([, count]) => count > 0).map(([state, count]) => `${count} ${STATE_TEXTS[state]}`);
  return parts.length === 0 ? 'no VM' : parts.join(', ');
}
