/** Reports duplicate keys of a YAML text with the messages of Kubernetes' YAML decoder, which name lines, not paths. */
import { MAX_YAML_SEPARATORS } from '#engine/request/limits.ts';
import { parseYaml } from '#kube/yaml.ts';

const MAX_LINES = 100;
const HEAD = 'yaml: unmarshal errors:';

interface ParsedYaml {
  readonly value: unknown;
  /** All duplicates as one error of several lines. */
  readonly duplicates?: string;
}

export function parseYamlWithDuplicates(text: string): ParsedYaml {
  const found: string[] = [];
  const onDuplicate = (key: unknown, line: number) => {
    if (found.length < MAX_LINES) found.push(`line ${line}: key ${JSON.stringify(key)} already set in map`);
  };
  const value = parseYaml(text, { onDuplicate, maxSeparators: MAX_YAML_SEPARATORS });
  return found.length === 0 ? { value } : { value, duplicates: [HEAD, ...found].join('\n  ') };
}

/** Splits an error into one warning per line. */
export function warningLines(error: string): string[] {
  if (!error.startsWith(HEAD)) return [error];
  return error
    .slice(HEAD.length)
    .trim()
    .split(/\s*\n\s*/);
}
