/**
 * Checks docs/seeds.md, the page that names the tests behind every requirement of the seeds: each file that it links to
 * exists, each test that a link's title names is in that file, and each requirement has at least one proof.
 */
import { posix } from 'node:path';
import type { SourceFile } from '#test/tidy/rules.ts';
import { brokenLinks } from '#test/tidy/test-links.ts';

/** A requirement: one row of a table. */
interface Requirement {
  readonly line: number;
  readonly cells: readonly string[];
}

const COLUMNS = ['Requirement', 'Implemented in', 'Unit', 'Plane', 'Guest', 'Different on purpose'];
/** The columns that name tests: unit, plane and guest. */
const PROOFS = [2, 3, 4];

export interface SeedsPage {
  readonly requirements: number;
  /** The problems of the page, as `line: problem`. */
  readonly problems: readonly string[];
}

/** Checks the page against all files of the repository. */
export function checkSeedsPage(page: SourceFile, files: readonly SourceFile[]): SeedsPage {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const requirements = requirementsOf(page.text);
  const problems = requirements.flatMap(({ line, cells }) =>
    [
      ...(cells.length === COLUMNS.length ? [] : [`has ${cells.length} cells, not ${COLUMNS.length}`]),
      ...(PROOFS.some((column) => isProof(cells[column] ?? '')) || isMeasured(cells)
        ? []
        : ['names neither a test nor a benchmark']),
      ...cells.flatMap((cell) => brokenLinks(cell, posix.dirname(page.path), texts)),
    ].map((problem) => `${line}: ${problem}`),
  );
  return { requirements: requirements.length, problems };
}

function requirementsOf(text: string): Requirement[] {
  return text.split('\n').flatMap((row, index) => {
    if (!row.startsWith('| ') || row.startsWith(`| ${COLUMNS[0]} |`)) return [];
    const cells = row
      .slice(1, row.lastIndexOf('|'))
      .split('|')
      .map((cell) => cell.trim());
    return [{ line: index + 1, cells }];
  });
}

const isProof = (cell: string) => /\]\([^\s)]+\.(?:test\.ts|txt)/.test(cell);
const isMeasured = (cells: readonly string[]) => /\]\(\.\.\/bench\//.test(cells[1] ?? '');
