/** Applies the rules of test/tidy/ to this repository. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { test } from 'node:test';
import { checkFolderTable, checkLayerPicture } from '#test/tidy/folder-table.ts';
import { importCycles, misplacedTestSupport, unusedExports } from '#test/tidy/import-graph.ts';
import { checkInvariantGuards } from '#test/tidy/invariant-guards.ts';
import { bannedWords, docComments, missingFiles, sharedNameProblems } from '#test/tidy/language.ts';
import { layers } from '#test/tidy/layers.ts';
import { rules, unjustified } from '#test/tidy/rules.ts';
import type { Rule, SourceFile } from '#test/tidy/rules.ts';
import { checkSeedsPage } from '#test/tidy/seeds-page.ts';

const ROOT = join(import.meta.dirname, '..');
/** Directories with third-party or generated files. */
const IGNORED = new Set(['node_modules', '.git', '.cache', '.selfsame']);
const TEXT = /\.(?:ts|js|mjs|json|jsonc|md|sh|ya?ml|html|css|txt)$|^[^.]+$|^\.[a-z]+rc$/;

const files = filesBelow(ROOT);

function filesBelow(dir: string): SourceFile[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return IGNORED.has(entry.name) ? [] : filesBelow(path);
    if (!entry.isFile() || !TEXT.test(entry.name)) return [];
    return [{ path: relative(ROOT, path).split(sep).join('/'), text: readFileSync(path, 'utf8') }];
  });
}

function fileNamed(path: string): SourceFile {
  const file = files.find((candidate) => candidate.path === path);
  assert.ok(file !== undefined, `${path} is seen`);
  return file;
}

test('the tidy test sees the repository', () => {
  for (const path of ['package.json', 'package-lock.json', 'src/main.ts', 'src/lib/clock.ts', 'test/tidy.test.ts']) {
    fileNamed(path);
  }
  assert.ok(files.filter(({ path }) => path.startsWith('src/')).length > 50);
});

const all: Record<string, Rule> = { layers, bannedWords, docComments, ...rules };
for (const [name, rule] of Object.entries(all)) {
  test(`tidy: ${name}`, () => {
    const findings = files.flatMap(rule).map(({ path, line, problem }) => `${path}:${line} ${problem}`);
    assert.equal(findings.join('\n'), '');
  });
}

test('an exported name has one meaning', () => assert.deepEqual(sharedNameProblems(files), []));

test('no files of src/ import each other in a circle', () => assert.deepEqual(importCycles(files), []));

test('every export of src/ is imported', () => assert.deepEqual(unusedExports(files), []));

test('test support stands in testing/ folders, and every file is used', () =>
  assert.deepEqual(misplacedTestSupport(files), []));

test('files that comments and documents mention exist', () => assert.deepEqual(missingFiles(files), []));

test('every runtime dependency has its justification in docs/adr', () => {
  const { dependencies } = JSON.parse(fileNamed('package.json').text) as { dependencies: Record<string, string> };
  const records = files.filter(({ path }) => path.startsWith('docs/adr/')).map(({ text }) => text);
  assert.ok(records.length > 0);
  assert.deepEqual(unjustified(Object.keys(dependencies), records), []);
});

test('docs/seeds.md names tests that exist', () => {
  const { requirements, problems } = checkSeedsPage(fileNamed('docs/seeds.md'), files);
  assert.ok(requirements > 50, `the page has ${requirements} requirements`);
  assert.deepEqual(problems, []);
});

test('each invariant of ARCHITECTURE.md names tests that exist', () => {
  const { invariants, problems } = checkInvariantGuards(fileNamed('ARCHITECTURE.md'), files);
  assert.ok(invariants > 20, `the page has ${invariants} invariants`);
  assert.deepEqual(problems, []);
});

test('the folder table of ARCHITECTURE.md matches the folders and their import rules', () => {
  const { rows, problems } = checkFolderTable(fileNamed('ARCHITECTURE.md'), files);
  assert.ok(rows > 40, `the table has ${rows} rows`);
  assert.deepEqual(problems, []);
});

test("the picture of the engine's layers in ARCHITECTURE.md matches layers.ts", () => {
  assert.deepEqual(checkLayerPicture(fileNamed('ARCHITECTURE.md')), []);
});
