/** What searches in strings cost at worst, so that no choice of texts makes them slower than what was charged. */
import { bytesCost } from '#cel/budget.ts';

/** For indexOf, split and replace. V8 jumps over what cannot match, but there are texts that hardly let it. */
export function searchCost(text: string, pattern: string): number {
  return bytesCost(text.length) * (1 + bytesCost(pattern.length));
}

/** For lastIndexOf, which compares the whole pattern at each place. */
export function backwardSearchCost(text: string, pattern: string): number {
  return bytesCost(text.length) + bytesCost(Math.max(0, text.length - pattern.length) * pattern.length);
}
