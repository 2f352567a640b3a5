/** The flag `-o json|yaml`, for commands that print text without it. */
import { stringify } from 'yaml';
import { CommandError, textFlag } from '#cli/parsing/flags.ts';

export type OutputFormat = 'json' | 'yaml' | undefined;

export const outputFlag = textFlag(
  { name: 'output', short: 'o', help: 'Output format: json or yaml; text by default.', completes: ['json', 'yaml'] },
  'string',
);

/** Throws CommandError with kubectl's message. */
export function parseOutputFormat(text: string | undefined): OutputFormat {
  if (text === undefined || text === 'json' || text === 'yaml') return text;
  throw new CommandError(
    `unable to match a printer suitable for the output format ${JSON.stringify(text)}, expected json or yaml`,
  );
}

/** Renders a value without a newline at the end. */
export function formatValue(value: unknown, format: NonNullable<OutputFormat>): string {
  return format === 'json' ? JSON.stringify(value, undefined, 4) : toYaml(value).trimEnd();
}

/** Renders YAML like kubectl: long texts are not wrapped, and there are no aliases. */
export function toYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** Formats a table like kubectl: columns as wide as their longest cell, three spaces between. */
export function alignedTable(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce(
    (known, row) => row.map((cell, i) => Math.max(cell.length, known[i] ?? 0)),
    [] as number[],
  );
  return rows
    .map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd((widths[i] ?? 0) + 3))).join(''))
    .join('\n');
}
