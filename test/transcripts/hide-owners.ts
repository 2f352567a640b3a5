/** Removes managedFields from the output of kubectl: 1.20 always prints them, later versions only on request. Pure. */

/** `  managedFields:` in YAML, `  Managed Fields:` in describe, `  "managedFields": [` in JSON. */
const START = /^( *)(?:managedFields:|(Managed Fields:)|"managedFields": \[)$/;

export function hideOwners(output: string): string {
  const kept: string[] = [];
  const seams: number[] = [];
  let hiding: string | undefined;
  for (const line of output.split('\n')) {
    if (hiding !== undefined && isWithin(line, hiding)) continue;
    const start = START.exec(line);
    hiding = start?.[1];
    if (start?.[2] !== undefined) seams.push(kept.length);
    if (start === null) kept.push(line);
  }
  for (const seam of seams) alignAround(kept, seam);
  return kept.join('\n');
}

/** Reports whether a line belongs to the block: deeper lines, items of a YAML list, and the bracket that ends a JSON list. */
function isWithin(line: string, indent: string): boolean {
  if (!line.startsWith(indent)) return false;
  return /^(?: |- |\],?$)/.test(line.slice(indent.length));
}

const FIELD = /^( *)([A-Z][^:]*:) +(?=\S)/;

/** Aligns the fields before and after the removed block, as describe does for adjacent fields. */
function alignAround(lines: string[], seam: number): void {
  const indent = FIELD.exec(lines[seam] ?? '')?.[1];
  const isField = (index: number) => indent !== undefined && FIELD.exec(lines[index] ?? '')?.[1] === indent;
  let first = seam;
  while (isField(first - 1)) first--;
  let end = seam;
  while (isField(end)) end++;
  const fields = lines.slice(first, end).map((line) => FIELD.exec(line)!);
  const width = Math.max(...fields.map(([, , name]) => name!.length)) + 2;
  for (const [i, { 0: head, 2: name }] of fields.entries()) {
    const value = lines[first + i]!.slice(head.length);
    lines[first + i] = `${indent}${name!.padEnd(width)}${value}`;
  }
}
