/** Which of the known words somebody meant who has mistyped one. Pure. */

/** Longer words than these are no typing mistakes of ours to mend. */
const MAX_LENGTH = 64;
const SHORT_LENGTH = 3;

/** Undefined where none is near enough to be worth a question. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word === '' || word.length > MAX_LENGTH) return undefined;
  const typed = word.toLowerCase();
  const most = typed.length <= SHORT_LENGTH ? 1 : 2;
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const distance = distanceOf(typed, name.toLowerCase());
    if (distance <= most && (best === undefined || distance < best.distance)) best = { name, distance };
  }
  if (best !== undefined) return best.name;
  // Who stops in the middle of a word has not mistyped it.
  return typed.length < SHORT_LENGTH ? undefined : known.find((name) => name.toLowerCase().startsWith(typed));
}

/** `; did you mean "start"?`, or nothing. */
export function suggestion(word: string, known: readonly string[], shown = JSON.stringify as (name: string) => string) {
  const near = nearest(word, known);
  return near === undefined ? '' : `; did you mean ${shown(near)}?`;
}

/** Letters to add, drop, change or swap with their neighbour. */
function distanceOf(one: string, other: string): number {
  const width = other.length + 1;
  const rows = Array.from({ length: one.length + 1 }, (_, i) => Array.from({ length: width }, (__, j) => i || j));
  for (let i = 1; i <= one.length; i++) {
    for (let j = 1; j <= other.length; j++) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      const at = (a: number, b: number) => rows[a]?.[b] ?? 0;
      let least = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + cost);
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (swapped) least = Math.min(least, at(i - 2, j - 2) + 1);
      rows[i]![j] = least;
    }
  }
  return rows[one.length]?.[other.length] ?? 0;
}
