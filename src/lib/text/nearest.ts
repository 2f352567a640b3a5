/** Finds the known word that is nearest to a mistyped one. Pure. */

/** Longer words are not compared. */
const MAX_LENGTH = 64;
const SHORT_LENGTH = 3;

/** Returns the known word that is nearest to `word`, or undefined if none is near enough to suggest. */
export function findNearest(word: string, known: readonly string[]): string | undefined {
  if (word === '' || word.length > MAX_LENGTH) return undefined;
  const typed = word.toLowerCase();
  const maxDistance = typed.length <= SHORT_LENGTH ? 1 : 2;
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const distance = distanceOf(typed, name.toLowerCase());
    if (distance <= maxDistance && (best === undefined || distance < best.distance)) best = { name, distance };
  }
  if (best !== undefined) return best.name;
  // The user may have typed only the beginning of a word.
  return typed.length < SHORT_LENGTH ? undefined : known.find((name) => name.toLowerCase().startsWith(typed));
}

/** Returns `; did you mean "start"?`, or an empty string if no known word is near. */
export function suggestion(
  word: string,
  known: readonly string[],
  format = JSON.stringify as (name: string) => string,
) {
  const near = findNearest(word, known);
  return near === undefined ? '' : `; did you mean ${format(near)}?`;
}

/** Returns the edit distance: letters to add, remove, change, or swap with their neighbour. */
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
