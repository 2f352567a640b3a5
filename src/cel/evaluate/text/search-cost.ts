/** The worst-case cost of searches in strings. No text makes a search slower than its cost. */
import { bytesCost } from '#cel/limits/budget.ts';

/** Returns the cost of indexOf, split and replace. V8 skips ahead where it can, but some texts prevent that. */
export function searchCost(text: string, pattern: string): number {
  return bytesCost(text.length) * (1 + bytesCost(pattern.length));
}

/** Returns the cost of lastIndexOf, which compares the whole pattern at each position. */
export function backwardSearchCost(text: string, pattern: string): number {
  return bytesCost(text.length) + bytesCost(Math.max(0, text.length - pattern.length) * pattern.length);
}
