/** Rules on the imports of src/: no cycles, no unused exports, and test support stands in testing/ folders. */
import { importsOf, targetOf } from '#test/tidy/layers.ts';
import { isTest } from '#test/tidy/rules.ts';
import type { SourceFile } from '#test/tidy/rules.ts';

/** The imported files of each file, both as paths from the root of the repository. */
type ImportGraph = ReadonlyMap<string, readonly string[]>;

function importGraph(files: readonly SourceFile[]): ImportGraph {
  const code = files.filter(({ path }) => path.endsWith('.ts') && /^(?:src|test|bench|scripts)\//.test(path));
  const paths = new Set(code.map(({ path }) => path));
  return new Map(
    code.map((file) => {
      const targets = importsOf(file).map(({ specifier }) => importedPath(specifier, file.path));
      return [file.path, [...new Set(targets.filter((path) => path !== undefined && paths.has(path)) as string[])]];
    }),
  );
}

function importedPath(specifier: string, from: string): string | undefined {
  if (specifier.startsWith('#test/')) return specifier.slice(1);
  if (specifier.startsWith('#')) return `src/${specifier.slice(1)}`;
  return targetOf(specifier, from);
}

/**
 * Returns each group of files of src/ that import each other in a circle, imports of types included: such files can only
 * be understood, tested and moved together.
 */
export function importCycles(files: readonly SourceFile[]): string[] {
  const graph = importGraph(files.filter(({ path }) => path.startsWith('src/') && !isTest(path)));
  return stronglyConnected(graph)
    .filter((group) => group.length > 1)
    .map((group) => `${group.sort().join(', ')} import each other: move down what they share`)
    .sort();
}

/** Tarjan's algorithm. A file that is in no cycle is a group of its own. */
function stronglyConnected(graph: ImportGraph): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const groups: string[][] = [];
  const visit = (file: string): number => {
    const index = order.size;
    order.set(file, index);
    lowest.set(file, index);
    open.push(file);
    for (const target of graph.get(file) ?? []) {
      const reached = order.has(target) ? (open.includes(target) ? order.get(target) : undefined) : visit(target);
      lowest.set(file, Math.min(lowest.get(file) ?? index, reached ?? index));
    }
    const low = lowest.get(file) ?? index;
    if (low === index) groups.push(open.splice(open.indexOf(file)));
    return low;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return groups;
}

/** Files that start a process or a worker, so that no file imports them. */
const ENTRY_POINTS = new Set(['src/main.ts', 'src/cli/main.ts', 'src/engine/store/sqlite/worker.ts']);

/** Returns the files of src/ that only tests import and that are outside of a testing/ folder, and those nobody imports. */
export function misplacedTestSupport(files: readonly SourceFile[]): string[] {
  const importers = new Map<string, string[]>();
  const graph = importGraph(files);
  for (const [file, targets] of graph) {
    for (const target of targets) importers.set(target, [...(importers.get(target) ?? []), file]);
  }
  return [...graph.keys()]
    .filter((path) => path.startsWith('src/') && !isTest(path) && !ENTRY_POINTS.has(path))
    .flatMap((path) => {
      const users = importers.get(path) ?? [];
      if (users.length === 0) return [`${path} is not imported: delete it`];
      return users.every(isTest) ? [`${path} is used only by tests: move it to a testing/ folder`] : [];
    });
}

const EXPORT = /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) (\w+)/gm;
const NAMED_IMPORT = /\b(?:import|export)\s+(?:type\s+)?(?:\w+\s*,\s*)?\{([^}]*)\}\s*from\s*'([^']+)'/g;
const WHOLE_IMPORT = /\bimport\s*\(\s*'([^']+)'|\*(?:\s+as\s+\w+)?\s+from\s*'([^']+)'/g;

/** Returns the exported names of src/ that no other file imports: they are local, or not needed. */
export function unusedExports(files: readonly SourceFile[]): string[] {
  const imported = new Set<string>();
  const wholly = new Set<string>();
  for (const { path, text } of files.filter((file) => file.path.endsWith('.ts'))) {
    for (const [, names = '', specifier = ''] of text.matchAll(NAMED_IMPORT)) {
      for (const name of names.split(',')) {
        imported.add(`${importedPath(specifier, path)} ${/^\s*(?:type\s+)?(\w+)/.exec(name)?.[1]}`);
      }
    }
    for (const [, dynamic, star] of text.matchAll(WHOLE_IMPORT)) {
      wholly.add(importedPath(dynamic ?? star ?? '', path) ?? '');
    }
  }
  return files
    .filter(({ path }) => path.startsWith('src/') && path.endsWith('.ts') && !isTest(path) && !wholly.has(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(EXPORT)]
        .filter(([, name]) => !imported.has(`${path} ${name}`))
        .map(([, name]) => `${path} exports ${name}, which no other file imports: remove the export, or the code`),
    );
}
