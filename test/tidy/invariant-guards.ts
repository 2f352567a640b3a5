/**
 * Checks the table "Guards" of ARCHITECTURE.md: each invariant has one row, each row links to at least one test, and the
 * linked files contain the named tests.
 */
import { posix } from 'node:path';
import type { SourceFile } from '#test/tidy/rules.ts';
import { brokenLinks } from '#test/tidy/test-links.ts';

const INVARIANT = /^(\d+)\. \*\*/gm;
const ROW = /^\| (\d+) \| (.*) \|$/gm;
const TEST_LINK = /\]\([^\s)]+\.test\.ts[ )]/;

export interface InvariantGuards {
  readonly invariants: number;
  /** The problems of the page, as `invariant N problem`. */
  readonly problems: readonly string[];
}

/** Checks the page against all files of the repository. */
export function checkInvariantGuards(page: SourceFile, files: readonly SourceFile[]): InvariantGuards {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const section = sectionOf(page.text);
  const invariants = [...section.matchAll(INVARIANT)].map(([, number = '']) => number);
  const rows = [...section.matchAll(ROW)].map(([, number = '', cell = '']) => ({ number, cell }));
  const problems = [
    ...invariants.flatMap((number) => {
      const count = rows.filter((row) => row.number === number).length;
      return count === 1 ? [] : [`invariant ${number} has ${count} rows in the table of guards, not 1`];
    }),
    ...rows.flatMap(({ number, cell }) => [
      ...(invariants.includes(number) ? [] : [`invariant ${number} has guards but does not exist`]),
      ...(TEST_LINK.test(cell) ? [] : [`invariant ${number} names no test`]),
      ...brokenLinks(cell, posix.dirname(page.path), texts).map((problem) => `invariant ${number} ${problem}`),
    ]),
  ];
  return { invariants: invariants.length, problems };
}

function sectionOf(text: string): string {
  const [, section = ''] = text.split('\n## Invariants\n');
  return section.split('\n## ')[0] ?? '';
}
