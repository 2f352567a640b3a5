/**
 * Generates docs/api/: one page for each of our kinds, from the schemas of the API server.
 *
 *   node scripts/api-reference.ts           writes the pages
 *   node scripts/api-reference.ts --check   exits with 1 if they differ from the schemas
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { customKinds } from '#api/custom-kinds/all-kinds.ts';
import { referencePages } from './api-reference/pages.ts';

const DIR = join(import.meta.dirname, '../docs/api');
const pages = referencePages(customKinds);

/** Returns the names of the pages that differ from the existing files. */
export function findOutdated(): string[] {
  const existing = new Set(readdirSync(DIR));
  const stale = [...pages].filter(
    ([name, text]) => !existing.has(name) || readFileSync(join(DIR, name), 'utf8') !== text,
  );
  const obsolete = [...existing].filter((name) => !pages.has(name));
  return [...stale.map(([name]) => name), ...obsolete];
}

function write(): void {
  rmSync(DIR, { recursive: true, force: true });
  mkdirSync(DIR, { recursive: true });
  for (const [name, text] of pages) writeFileSync(join(DIR, name), text);
}

if (import.meta.main) {
  if (process.argv[2] !== '--check') write();
  const names = findOutdated();
  if (names.length > 0) {
    process.stderr.write(`docs/api is out of date: ${names.join(', ')}; run node scripts/api-reference.ts\n`);
    process.exitCode = 1;
  }
}
