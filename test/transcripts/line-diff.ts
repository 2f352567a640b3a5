/** Returns the difference between two texts by line: " " common, "-" only wanted, "+" only got. */
export function lineDiff(wanted: string, got: string): string {
  const a = wanted.split('\n');
  const b = got.split('\n');
  const common = commonLengths(a, b);
  const lines: string[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(`  ${a[i]}`);
      i++;
      j++;
    } else if (i < a.length && (j === b.length || lengthAt(common, i + 1, j) >= lengthAt(common, i, j + 1))) {
      lines.push(`- ${a[i++]}`);
    } else {
      lines.push(`+ ${b[j++]}`);
    }
  }
  return lines.join('\n');
}

/** Returns, at [i][j], the largest number of lines that a from i on and b from j on have in common. */
function commonLengths(a: readonly string[], b: readonly string[]): number[][] {
  const lengths = Array.from({ length: a.length + 1 }, () => Array.from({ length: b.length + 1 }, () => 0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const row = lengths[i] as number[];
      row[j] =
        a[i] === b[j]
          ? lengthAt(lengths, i + 1, j + 1) + 1
          : Math.max(lengthAt(lengths, i + 1, j), lengthAt(lengths, i, j + 1));
    }
  }
  return lengths;
}

const lengthAt = (lengths: readonly number[][], i: number, j: number): number => lengths[i]?.[j] ?? 0;
