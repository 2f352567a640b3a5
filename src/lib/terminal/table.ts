/** Aligns tables by the columns that their cells take on a terminal. Pure. */
import { displayWidth, padToWidth, replaceControls } from '#lib/terminal/display-width.ts';

type TextRow = readonly string[];

interface AlignOptions {
  /** The spaces between columns. */
  readonly gap?: number;
  /** The text before each line. */
  readonly indent?: string;
  /** Colours a padded cell. */
  readonly paint?: (cell: string, at: { readonly row: number; readonly column: number }) => string;
}

/** Formats a table like kubectl: columns as wide as their widest cell, three spaces between, without spaces at the end. */
export function alignedTable(rows: readonly TextRow[], options: AlignOptions = {}): string {
  const { gap = 3, indent = '', paint = (cell) => cell } = options;
  const clean = rows.map((row) => row.map(replaceControls));
  const widths = columnWidths(clean);
  const lines = clean.map((row, index) => {
    const last = row.findLastIndex((cell) => cell !== '');
    const cells = row.slice(0, last + 1).map((cell, column) => {
      const padded = column === last ? cell : padToWidth(cell, (widths[column] ?? 0) + gap);
      return paint(padded, { row: index, column });
    });
    return cells.length === 0 ? '' : indent + cells.join('');
  });
  return lines.join('\n');
}

/** Returns the width of each column. */
function columnWidths(rows: readonly TextRow[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, displayWidth(cell));
  }
  return widths;
}

/**
 * Returns a function that formats one row after the other. Columns can only grow, because earlier rows are already printed;
 * a cell wider than `maxWidth` shifts the rest of its row instead.
 */
export function growingTable(firstWidths: readonly number[], maxWidth: number): (row: TextRow) => string {
  const widths = [...firstWidths];
  return (row) => {
    const clean = row.map(replaceControls);
    for (const [column, cell] of clean.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, Math.min(displayWidth(cell), maxWidth));
    }
    return clean
      .map((cell, column) => (column === clean.length - 1 ? cell : padToWidth(cell, widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  };
}
