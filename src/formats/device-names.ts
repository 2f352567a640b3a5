/** Converts names in a file to names of Kubernetes: valid, unique, and as close to the original as possible. Pure. */
import type { Findings } from '#formats/findings.ts';
import { nameErrors } from '#kube/names.ts';
import { quoteText } from '#lib/text/quote-text.ts';

const MAX_LABEL = 63;

/** Converts the text to a DNS label; `fallback` if no valid character remains. */
export function toLabel(text: string, fallback: string): string {
  const label = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, MAX_LABEL)
    .replaceAll(/^-+|-+$/g, '');
  return label === '' ? fallback : label;
}

/** Converts the name of a machine, unless Kubernetes accepts it unchanged. */
export function toMachineName(text: string, findings: Findings): string {
  if (text !== '' && nameErrors('subdomain', text).length === 0) return text;
  const name = toLabel(text, 'machine');
  findings.addNote(`the name ${quoteText(text)} is changed to ${name}`);
  return name;
}

/** Makes names unique: `data`, `data-2`, `data-3`. */
export class UniqueNames {
  readonly #taken = new Set<string>();
  readonly #next = new Map<string, number>();

  take(wanted: string, fallback: string): string {
    const base = toLabel(wanted, fallback);
    let name = base;
    for (let n = this.#next.get(base) ?? 2; this.#taken.has(name); n++) {
      const suffix = `-${n}`;
      name = `${base.slice(0, MAX_LABEL - suffix.length).replace(/-+$/, '')}${suffix}`;
      this.#next.set(base, n + 1);
    }
    this.#taken.add(name);
    return name;
  }
}
