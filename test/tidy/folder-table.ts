/**
 * Checks the folder table of ARCHITECTURE.md: every folder that it names exists, every folder directly below src/,
 * src/engine/, src/node/ and src/plane/ has a row, and the column "May import" repeats the import rules of layers.ts.
 */
import { LAYERS } from '#test/tidy/layers.ts';
import type { SourceFile } from '#test/tidy/rules.ts';

interface FolderRow {
  /** The folders in the first cell, such as `src/engine/store/`. */
  readonly folders: readonly string[];
  readonly imports: string;
}

/** Folders whose direct subfolders all need a row. */
const DESCRIBED = ['src/', 'src/engine/', 'src/node/', 'src/plane/'];

export interface FolderTable {
  readonly rows: number;
  readonly problems: readonly string[];
}

/** Compares the table with all files of the repository. */
export function checkFolderTable(page: SourceFile, files: readonly SourceFile[]): FolderTable {
  const rows = rowsOf(page.text);
  const paths = files.map(({ path }) => path);
  const named = new Set(rows.flatMap(({ folders }) => folders));
  const missing = [...named].filter((folder) => !paths.some((path) => path.startsWith(folder)));
  return {
    rows: rows.length,
    problems: [
      ...missing.map((folder) => `${folder} does not exist`),
      ...DESCRIBED.flatMap((parent) => subfoldersOf(parent, paths))
        .filter((folder) => !named.has(folder))
        .map((folder) => `${folder} has no row`),
      ...rows.flatMap(importProblems),
    ],
  };
}

function rowsOf(text: string): FolderRow[] {
  const table = text.split('\n## Folders\n')[1]?.split('\n## ')[0] ?? '';
  return [...table.matchAll(/^\| (`[^|]+) \|.*\| ?([^|]*) \|$/gm)].map(([, first = '', imports = '']) => ({
    folders: [...first.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path),
    imports: imports.trim(),
  }));
}

function subfoldersOf(parent: string, paths: readonly string[]): string[] {
  const below = paths.filter((path) => path.startsWith(parent)).map((path) => path.slice(parent.length).split('/'));
  return [...new Set(below.filter(({ length }) => length > 1).map(([folder]) => `${parent}${folder}/`))];
}

function importProblems({ folders, imports }: FolderRow): string[] {
  return folders.flatMap((folder) => {
    const name = /^src\/(.+)\/$/.exec(folder)?.[1] ?? '';
    const layer = LAYERS[name];
    if (layer === undefined) return [];
    const others = layer.sees.filter((seen) => !seen.startsWith(`${name}/`));
    const want = others.map((seen) => seen.replace(/\/\*$/, '')).toSorted();
    const text = want.length === 0 ? '–' : want.join(', ');
    return imports === text ? [] : [`${folder} may import "${imports}", but layers.ts allows "${text}"`];
  });
}
