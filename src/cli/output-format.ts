/** The flag `-o json|yaml`, for commands that print text without it. */
import { stringify } from 'yaml';
import { UsageError } from '#lib/command-line/command-error.ts';
import type { Flag } from '#lib/command-line/flag.ts';
import { escapeControls } from '#lib/terminal/display-width.ts';

type OutputFormat = 'json' | 'yaml' | undefined;

export const outputFlag: Flag<OutputFormat> = {
  name: 'output',
  short: 'o',
  value: 'string',
  help: 'Output format: json or yaml; text by default.',
  completes: ['json', 'yaml'],
  fallback: undefined,
  parse(text) {
    if (text === 'json' || text === 'yaml') return text;
    throw new UsageError(
      `unable to match a printer suitable for the output format ${JSON.stringify(text)}, expected json or yaml`,
    );
  },
};

/** Renders a value without a newline at the end. */
export function formatValue(value: unknown, format: NonNullable<OutputFormat>): string {
  return format === 'json' ? jsonText(value, 4) : toYaml(value).trimEnd();
}

/** Renders JSON. Characters that would control a terminal are escaped. */
export function jsonText(value: unknown, indent: number): string {
  return escapeControls(JSON.stringify(value, undefined, indent));
}

/**
 * Renders YAML like kubectl: long texts are not wrapped, and there are no aliases. With characters that would control a
 * terminal, all texts are quoted, so that these can be escaped.
 */
export function toYaml(value: unknown): string {
  const options = { lineWidth: 0, aliasDuplicateObjects: false };
  const text = stringify(value, options);
  if (escapeControls(text) === text) return text;
  return escapeControls(stringify(value, { ...options, defaultStringType: 'QUOTE_DOUBLE' }));
}
