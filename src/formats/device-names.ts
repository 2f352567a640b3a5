/** Names of a file, as names of Kubernetes: valid, unique, and as like to the original as can be. Pure. */
import { quoted, type Findings } from '#formats/faults.ts';
import { nameErrors } from '#kube/names.ts';

const MAX_LABEL = 63;

/** A DNS label made of `text`; `fallback` where nothing of it is left. */
export function labelFrom(text: string, fallback: string): string {
  const label = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, MAX_LABEL)
    .replaceAll(/^-+|-+$/g, '');
  return label === '' ? fallback : label;
}

/** The name of a machine, as it is where Kubernetes takes it. */
export function machineNameOf(text: string, findings: Findings): string {
  if (text !== '' && nameErrors('subdomain', text).length === 0) return text;
  const name = labelFrom(text, 'machine');
  findings.note(`the name ${quoted(text)} becomes ${name}`);
  return name;
}

/** Gives out each name once: `data`, `data-2`, `data-3`. */
export class UniqueNames {
  readonly #taken = new Set<string>();
  readonly #next = new Map<string, number>();

  take(wanted: string, fallback: string): string {
    const base = labelFrom(wanted, fallback);
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
