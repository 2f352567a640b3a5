/** Keys that a YAML text says twice, in the words of the YAML decoder of Kubernetes: it names lines, not paths. */
import { isMap, isPair, isScalar, isSeq, LineCounter, type Document } from 'yaml';
import { parseYamlDocument } from '#kube/yaml.ts';

const MAX_LINES = 100;
const HEAD = 'yaml: unmarshal errors:';

/** For a text that has been parsed already, as something else. */
export function repeatedYamlKeys(text: string): string | undefined {
  const lines = new LineCounter();
  return repeatedKeys(parseYamlDocument(text, lines), lines);
}

/** All of them as one error of several lines; undefined = none. */
export function repeatedKeys(document: Document, lines: LineCounter): string | undefined {
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
      // Go notices when it sets the value: there the line is the value's.
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

/** Warnings have one line each. */
export function warningLines(fault: string): string[] {
  if (!fault.startsWith(HEAD)) return [fault];
  return fault
    .slice(HEAD.length)
    .trim()
    .split(/\s*\n\s*/);
}
