/** Finds duplicate keys in a YAML text, with the messages of Kubernetes' YAML decoder: it reports lines, not paths. */
import { isMap, isPair, isScalar, isSeq, LineCounter, type Document } from 'yaml';
import { parseYamlDocument } from '#kube/yaml.ts';

const MAX_LINES = 100;
const HEAD = 'yaml: unmarshal errors:';

/** For a text that was already parsed differently. */
export function findDuplicateYamlKeys(text: string): string | undefined {
  const lines = new LineCounter();
  return findDuplicateKeys(parseYamlDocument(text, lines), lines);
}

/** Returns all duplicates as one error of several lines, or undefined if there are none. */
export function findDuplicateKeys(document: Document, lines: LineCounter): string | undefined {
  const found: string[] = [];
  visit(document.contents);
  return found.length === 0 ? undefined : [HEAD, ...found.slice(0, MAX_LINES)].join('\n  ');

  function visit(node: unknown): void {
    if (isSeq(node)) for (const item of node.items) visit(item);
    if (!isMap(node)) return;
    const keys = new Set<unknown>();
    for (const { key, value } of node.items.filter(isPair)) {
      visit(value);
      const name = isScalar(key) ? key.value : undefined;
      if (name === undefined) continue;
      // Go reports the line of the value, where it is set.
      if (keys.has(name))
        found.push(`line ${lineOf(value) ?? lineOf(key)}: key ${JSON.stringify(name)} already set in map`);
      keys.add(name);
    }
  }

  function lineOf(node: unknown): number | undefined {
    const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
    return Array.isArray(range) ? lines.linePos(Number(range[0])).line : undefined;
  }
}

/** Splits an error into one warning per line. */
export function warningLines(error: string): string[] {
  if (!error.startsWith(HEAD)) return [error];
  return error
    .slice(HEAD.length)
    .trim()
    .split(/\s*\n\s*/);
}
