import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importCycles, misplacedTestSupport, unusedExports } from '#test/tidy/import-graph.ts';

const file = (path: string, ...imports: string[]) => ({
  path,
  text: imports.map((specifier) => `import type { X } from '${specifier}';\n`).join(''),
});

test('a cycle is reported once, with all of its files, and imports that only lead into it are not', () => {
  const files = [
    file('src/lib/a.ts', '#lib/b.ts'),
    file('src/lib/b.ts', './c.ts'),
    file('src/lib/c.ts', '#lib/a.ts', '#lib/below.ts', 'node:fs'),
    file('src/lib/below.ts'),
    file('src/lib/above.ts', '#lib/a.ts', '#lib/below.ts'),
  ];
  assert.deepEqual(importCycles(files), [
    'src/lib/a.ts, src/lib/b.ts, src/lib/c.ts import each other: move down what they share',
  ]);
});

test('two separate cycles are two findings, and a diamond is none', () => {
  const files = [
    file('src/lib/a.ts', '#lib/b.ts'),
    file('src/lib/b.ts', '#lib/a.ts', '#kube/c.ts'),
    file('src/kube/c.ts', '#kube/d.ts'),
    file('src/kube/d.ts', '#kube/c.ts'),
    file('src/api/top.ts', '#api/left.ts', '#api/right.ts'),
    file('src/api/left.ts', '#api/bottom.ts'),
    file('src/api/right.ts', '#api/bottom.ts'),
    file('src/api/bottom.ts'),
  ];
  assert.deepEqual(importCycles(files), [
    'src/kube/c.ts, src/kube/d.ts import each other: move down what they share',
    'src/lib/a.ts, src/lib/b.ts import each other: move down what they share',
  ]);
});

test('cycles between tests do not count', () => {
  const files = [file('src/lib/a.test.ts', '#lib/testing/b.ts'), file('src/lib/testing/b.ts', '#lib/a.test.ts')];
  assert.deepEqual(importCycles(files), []);
});

test('a file that only tests use belongs to a testing/ folder, and a file that no file imports goes', () => {
  const files = [
    file('src/main.ts', './lib/used.ts'),
    file('src/lib/used.ts'),
    file('src/lib/used.test.ts', '#lib/used.ts', '#lib/sample.ts', '#lib/testing/builder.ts'),
    file('src/lib/sample.ts'),
    file('src/lib/testing/builder.ts'),
    file('src/lib/forgotten.ts'),
    file('src/lib/measured.ts'),
    file('bench/main.ts', '#lib/measured.ts'),
  ];
  assert.deepEqual(misplacedTestSupport(files), [
    'src/lib/sample.ts is used only by tests: move it to a testing/ folder',
    'src/lib/forgotten.ts is not imported: delete it',
  ]);
});

test('an export that no other file imports is found, in every form of import', () => {
  const exporting = {
    path: 'src/lib/a.ts',
    text: 'export const used = 1;\nexport interface Shape {}\nexport function forTests() {}\nexport const local = used;\n',
  };
  const files = [
    exporting,
    { ...exporting, path: 'src/lib/whole.ts' },
    { ...exporting, path: 'src/lib/dynamic.ts' },
    {
      path: 'src/lib/b.ts',
      text: "import { used as renamed, type Shape } from '#lib/a.ts';\nawait import('./dynamic.ts');\n",
    },
    {
      path: 'src/lib/a.test.ts',
      text: "import {\n  forTests,\n} from './a.ts';\nimport * as whole from './whole.ts';\n",
    },
  ];
  assert.deepEqual(unusedExports(files), [
    'src/lib/a.ts exports local, which no other file imports: remove the export, or the code',
  ]);
});
