/** A line of an example as the words that a shell makes of it: quotes, `$(…)` and `<(…)` as far as our examples have them. */
export function shellWords(line: string): string[] {
  const words: string[] = [];
  const inner = line
    .replaceAll(/<\(([^)]*)\)/g, ' $1 ')
    .replaceAll(/\$\([^)]*\)/g, 'substituted')
    .replaceAll(/\s>>?\s*\S+/g, ' ');
  for (const [, single, double, plain] of inner.matchAll(/'([^']*)'|"([^"]*)"|((?:[^\s'"]|'[^']*'|"[^"]*")+)/g)) {
    words.push(single ?? double ?? (plain ?? '').replaceAll(/['"]/g, ''));
  }
  return words;
}
