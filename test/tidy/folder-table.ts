/**
 * Checks ARCHITECTURE.md. The folder table: every folder that it names exists, every folder directly below src/,
 * src/engine/, src/node/ and src/plane/ has a row, and the column "May import" repeats the import rules of layers.ts.
 * The picture of the engine's layers: it names every folder of src/engine/, before those that it may import.
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

/** Compares the picture of the engine's layers with layers.ts. */
export function checkLayerPicture(page: SourceFile): string[] {
  const picture = /The folders of `src\/engine\/` are layers[^`]*```\n([^`]*)```/.exec(page.text)?.[1] ?? '';
  const order: readonly string[] = picture.match(/[a-z]+(?:-[a-z]+)*/g) ?? [];
  const folders = Object.keys(LAYERS).filter((name) => name.startsWith('engine/'));
  return folders.flatMap((name) => {
    const at = order.indexOf(name.slice('engine/'.length));
    if (at < 0) return [`${name} is missing in the picture of the layers`];
    const above = LAYERS[name]!.sees.filter(
      (seen) => seen.startsWith('engine/') && order.indexOf(seen.slice('engine/'.length)) < at,
    );
    return above.map((seen) => `${name} may import ${seen}, which the picture of the layers shows before it`);
  });
}
