/**
 * Writes docs/api/: one page for each of our kinds, from the schemas that the API server itself gets.
 *
 *   node scripts/api-reference.ts           writes them
 *   node scripts/api-reference.ts --check   ends with 1 where they are not what the schemas say
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { customKinds } from '#api/kinds.ts';
import { referencePages } from './api-reference/pages.ts';

const DIR = join(import.meta.dirname, '../docs/api');
const pages = referencePages(customKinds);

/** What differs from the files that are there. */
export function outdated(): string[] {
  const there = new Set(readdirSync(DIR));
  const stale = [...pages].filter(([name, text]) => !there.has(name) || readFileSync(join(DIR, name), 'utf8') !== text);
  const left = [...there].filter((name) => !pages.has(name));
  return [...stale.map(([name]) => name), ...left];
}

function write(): void {
  rmSync(DIR, { recursive: true, force: true });
  mkdirSync(DIR, { recursive: true });
  for (const [name, text] of pages) writeFileSync(join(DIR, name), text);
}

if (import.meta.main) {
  if (process.argv[2] !== '--check') write();
  const names = outdated();
  if (names.length > 0) {
    process.stderr.write(
      `docs/api is not what the schemas say: ${names.join(', ')}; run node scripts/api-reference.ts\n`,
    );
    process.exitCode = 1;
  }
}
