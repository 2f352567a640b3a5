/** Tests that every rule finds its violations and accepts code that only looks similar. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importsOf, isBelow, layers, LAYERS } from '#test/tidy/layers.ts';
import * as tidy from '#test/tidy/rules.ts';
import { scanSource } from '#test/tidy/source-text.ts';

interface Case {
  readonly rule: tidy.Rule;
  readonly path?: string;
  readonly text?: string;
  /** The lines of the findings. */
  readonly want: number[];
}

const lines = (count: number) => 'x;\n'.repeat(count);
const registry = ['https://', 'registry.example.org/pkg'].join('');

const cases: Record<string, Case> = {
  'a file of 601 lines is too long': { rule: tidy.fileSize, text: lines(601), want: [600] },
  'a file of 600 lines is not too long': { rule: tidy.fileSize, text: lines(600), want: [] },
  'a test of 601 lines is too long': { rule: tidy.fileSize, path: 'src/lib/x.test.ts', text: lines(601), want: [600] },
  'a long document is not a source file': { rule: tidy.fileSize, path: 'docs/x.md', text: lines(900), want: [] },

  'the environment is read in one place': { rule: tidy.environment, text: '\nconst a = process.env.A;', want: [2] },
  'argv is read in one place': { rule: tidy.environment, text: 'f(process.argv)', want: [1] },
  'main.ts may read them': { rule: tidy.environment, path: 'src/main.ts', text: 'process.env', want: [] },
  'benchmarks may read them': { rule: tidy.environment, path: 'bench/main.ts', text: 'process.env', want: [] },
  'a comment may mention the environment': { rule: tidy.environment, text: '// process.env', want: [] },
  'a string may mention the environment': { rule: tidy.environment, text: "f('process.env')", want: [] },
  'code inside a template is code': { rule: tidy.environment, text: 'f(`a ${process.env.A} b`)', want: [1] },

  'Date.now is the system clock': { rule: tidy.systemClock, text: 'const a = Date.now();', want: [1] },
  'passing Date.now on is a use of the system clock': { rule: tidy.systemClock, text: 'f(Date.now)', want: [1] },
  'new Date() without arguments is a use of the system clock': {
    rule: tidy.systemClock,
    text: 'a = new Date( );',
    want: [1],
  },
  'new Date of a value is allowed': { rule: tidy.systemClock, text: 'a = new Date(ms);', want: [] },
  'the type Date is allowed': { rule: tidy.systemClock, text: 'function f(a: Date): Date {}', want: [] },
  'clock.ts may use the system clock': {
    rule: tidy.systemClock,
    path: 'src/lib/clock.ts',
    text: 'Date.now()',
    want: [],
  },
  'a test may use the system clock': {
    rule: tidy.systemClock,
    path: 'src/lib/x.test.ts',
    text: 'Date.now()',
    want: [],
  },

  'a default export': { rule: tidy.defaultExport, text: 'export default function f() {}', want: [1] },
  'a renamed default export': { rule: tidy.defaultExport, text: 'export {\n  f as default };', want: [1] },
  'a named export': { rule: tidy.defaultExport, text: 'export const defaults = 1;', want: [] },

  'any as a type': { rule: tidy.anyType, text: 'let a: any;\nlet b: any[] = c as any;', want: [1, 2, 2] },
  'any as an argument of a type': { rule: tidy.anyType, text: 'Map<string, any>', want: [1] },
  'any as a whole type': { rule: tidy.anyType, text: 'type Loose = any;', want: [1] },
  'a variable named any': { rule: tidy.anyType, text: 'f((any) => any.x, [a, any]);', want: [] },
  'a method named any': { rule: tidy.anyType, text: 'AbortSignal.any([a]); const x = { any: 1, any() {} };', want: [] },
  'a word that contains any': { rule: tidy.anyType, text: 'const many = anything;', want: [] },

  'a silenced type error': { rule: tidy.suppressedTypes, text: '// @ts-ignore\n/* @ts-expect-error */', want: [1, 2] },
  'a test that something does not compile': {
    rule: tidy.suppressedTypes,
    path: 'src/lib/x.test.ts',
    text: '// @ts-expect-error: a number\n// @ts-ignore',
    want: [2],
  },
  'a string with the same words': { rule: tidy.suppressedTypes, text: "f('@ts-ignore')", want: [] },

  'a skipped test without a reason': {
    rule: tidy.unexplainedSkip,
    path: 'test/x.test.ts',
    text: "test.skip('a', f);\ntest('b', { skip: true }, f);\nt.skip();",
    want: [1, 2, 3],
  },
  'a test marked with only': {
    rule: tidy.unexplainedSkip,
    path: 'test/x.test.ts',
    text: "test.only('a', f);",
    want: [1],
  },
  'a skipped test with a reason': {
    rule: tidy.unexplainedSkip,
    path: 'test/x.test.ts',
    text: "test('a', { skip: found ? false : 'no kubectl' }, f); t.skip('why');",
    want: [],
  },

  'a file named utils': { rule: tidy.vagueName, path: 'src/lib/utils.ts', want: [1] },
  'a folder named common': { rule: tidy.vagueName, path: 'src/common/x.ts', want: [1] },
  'a name that only begins with a vague word': { rule: tidy.vagueName, path: 'src/lib/commonmark.ts', want: [] },
  'a name in camel case': { rule: tidy.kebabCase, path: 'src/lib/dataDir.ts', want: [1] },
  'a name in kebab-case': { rule: tidy.kebabCase, path: 'src/lib/data-dir.test.ts', want: [] },

  'a registry in a document': { rule: tidy.registryAddress, path: 'docs/x.md', text: `see ${registry}`, want: [1] },
  'another address in a document': {
    rule: tidy.registryAddress,
    path: 'docs/x.md',
    text: 'https://example.org/registry',
    want: [],
  },
  'a host in the lock file': {
    rule: tidy.lockHosts,
    path: 'package-lock.json',
    text: '{\n"resolved": "https://host/x.tgz"}',
    want: [2],
  },
  'a lock file without hosts': {
    rule: tidy.lockHosts,
    path: 'package-lock.json',
    text: '{"resolved": "web"}',
    want: [],
  },

  'lib imports no other folder': { rule: layers, text: "import { a } from '#kube/meta.ts';", want: [1] },
  'kube may import lib': { rule: layers, path: 'src/kube/x.ts', text: "import { a } from '#lib/ids.ts';", want: [] },
  'kube runs in a browser and imports no node module': {
    rule: layers,
    path: 'src/kube/x.ts',
    text: "import { a } from 'node:fs';",
    want: [1],
  },
  'the engine may not import the client': {
    rule: layers,
    path: 'src/engine/x.ts',
    text: "import { a } from '#client/client.ts';",
    want: [1],
  },
  'engine/controllers may import the client': {
    rule: layers,
    path: 'src/engine/controllers/x.ts',
    text: "import { a } from '#client/client.ts';",
    want: [],
  },
  'a folder of the engine may not import a higher one': {
    rule: layers,
    path: 'src/engine/registry/x.ts',
    text: "import type { A } from '#engine/admission/admission.ts';",
    want: [1],
  },
  'a folder of the engine may import a lower one': {
    rule: layers,
    path: 'src/engine/admission/webhooks/x.ts',
    text: "import { a } from '#engine/registry/crd/x.ts';",
    want: [],
  },
  'a folder of the engine may not import the composition root': {
    rule: layers,
    path: 'src/engine/handlers/x.ts',
    text: "import { a } from '#engine/core.ts';",
    want: [1],
  },
  'a test may import everything of its own top-level folder': {
    rule: layers,
    path: 'src/engine/handlers/x.test.ts',
    text: "import { a } from '#engine/core.ts';",
    want: [],
  },
  'a test may not import other folders than the code beside it': {
    rule: layers,
    path: 'src/engine/handlers/x.test.ts',
    text: "import { a } from '#client/client.ts';",
    want: [1],
  },
  'the client may not import the engine, not even its types': {
    rule: layers,
    path: 'src/client/x.ts',
    text: "\nimport type { A } from '#engine/request/request.ts';",
    want: [2],
  },
  'relative imports are checked': {
    rule: layers,
    path: 'src/lib/x.ts',
    text: "export { a } from '../kube/x.ts';",
    want: [1],
  },
  'dynamic imports are checked': { rule: layers, text: "const a = await import('#kube/x.ts');", want: [1] },
  'imports for side effects are checked': { rule: layers, text: "import '#kube/x.ts';", want: [1] },
  'no file may import main.ts': {
    rule: layers,
    path: 'src/engine/x.ts',
    text: "import { a } from '../main.ts';",
    want: [1],
  },
  'no file may import commands.ts of the program': {
    rule: layers,
    path: 'src/lib/x.ts',
    text: "import { a } from '../program/commands.ts';",
    want: [1],
  },
  'main.ts may import every folder': {
    rule: layers,
    path: 'src/main.ts',
    text: "import { a } from '#engine/engine.ts';",
    want: [],
  },
  'a new folder needs a row': { rule: layers, path: 'src/novelty/x.ts', want: [1] },
  'a new folder of the engine needs a row': { rule: layers, path: 'src/engine/novelty/x.ts', want: [1] },
  'a program may not import test support': {
    rule: layers,
    path: 'src/engine/x.ts',
    text: "import { a } from '#test/support/x.ts';",
    want: [1],
  },
  'a program may not import fakes beside the code': {
    rule: layers,
    path: 'src/client/x.ts',
    text: "import { a } from '#client/testing/fake.ts';",
    want: [1],
  },
  'a test may import test support': {
    rule: layers,
    path: 'src/lib/x.test.ts',
    text: "import { a } from '#test/support/x.ts';",
    want: [],
  },
  'node/domains may import the hypervisor port': {
    rule: layers,
    path: 'src/node/domains/x.ts',
    text: "import { a } from '#node/hypervisor/hypervisor.ts';",
    want: [],
  },
  'node/domains may not import QEMU': {
    rule: layers,
    path: 'src/node/domains/x.ts',
    text: "import { a } from '#node/hypervisor/qemu/x.ts';",
    want: [1],
  },
  'node/definition may not import the hypervisor': {
    rule: layers,
    path: 'src/node/definition/x.ts',
    text: "import { a } from '#node/hypervisor/hypervisor.ts';",
    want: [1],
  },
  'the plane may import every folder of the node': {
    rule: layers,
    path: 'src/plane/x.ts',
    text: "import { a } from '#node/hypervisor/qemu/x.ts';",
    want: [],
  },
  'a test may combine a folder of the node with its neighbours': {
    rule: layers,
    path: 'src/node/domains/x.test.ts',
    text: "import { a } from '#node/hypervisor/fake/x.ts';",
    want: [],
  },
  'a test obeys the outermost layers': {
    rule: layers,
    path: 'src/node/domains/x.test.ts',
    text: "import { a } from '#controllers/vm/x.ts';",
    want: [1],
  },
  'a controller may not import another one': {
    rule: layers,
    path: 'src/controllers/migration/x.ts',
    text: "import { a } from '#controllers/vmi/x.ts';",
    want: [1],
  },
  'a controller may import what controllers share': {
    rule: layers,
    path: 'src/controllers/migration/x.ts',
    text: "import { a } from '#controllers/shared/launcher/x.ts';",
    want: [],
  },
  'packages are not layers': { rule: layers, text: "import pino from 'pino';", want: [] },
  'an import in a comment is ignored': { rule: layers, text: "// import { a } from '#kube/x.ts';", want: [] },
};

for (const [name, { rule, path = 'src/lib/x.ts', text = '', want }] of Object.entries(cases)) {
  test(`tidy rule: ${name}`, () => {
    const findings = rule({ path, text });
    assert.deepEqual(
      findings.map(({ line }) => line),
      want,
      JSON.stringify(findings),
    );
  });
}

test('a violation of a layer is reported with the reason', () => {
  const [finding] = layers({ path: 'src/engine/x.ts', text: "import { a } from '#client/client.ts';" });
  assert.match(
    finding?.problem ?? '',
    /engine may see only lib, kube, cel, engine\/\*, because the engine is a server/,
  );
});

test('no layer sees itself through others', () => {
  const rows = Object.keys(LAYERS);
  const seenBy = (folder: string) =>
    rows.filter((row) => row !== folder && LAYERS[folder]?.sees.some((seen) => row === seen || isBelow(row, seen)));
  const reach = (folder: string, found: Set<string>): Set<string> => {
    for (const next of seenBy(folder)) {
      if (found.has(next)) continue;
      found.add(next);
      reach(next, found);
    }
    return found;
  };
  assert.ok(reach('plane', new Set()).has('node/hypervisor/qemu'), 'a row with /* stands for the rows below it');
  const circular = rows.filter((folder) => reach(folder, new Set()).has(folder));
  assert.deepEqual(circular, []);
});

test('a dependency without justification is found', () => {
  assert.deepEqual(tidy.unjustified(['pino', 'left-pad'], ['- `pino`: logs']), ['left-pad']);
});

test('imports of all forms are found', () => {
  const text = `import a, { type B } from 'x';\nimport 'y';\nexport * from "z";\nawait import('w');\nimport {\n  c,\n} from 'v';`;
  assert.deepEqual(
    importsOf({ path: 'x.ts', text }).map(({ specifier }) => specifier),
    ['x', 'y', 'z', 'w', 'v'],
  );
});

const scans: Record<string, [text: string, code: string]> = {
  'comments are blanked': ['a /* b */ c // d\ne', 'a         c     \ne'],
  'quotes stay, their contents are blanked': [`f('a', "b")`, `f(' ', " ")`],
  'an escaped quote does not end a string': [String.raw`f('a\'b') c`, `f('    ') c`],
  'a comment sign in a string does not start a comment': [`f('//') c`, `f('  ') c`],
  'a quote in a comment does not start a string': [`// don't\nc`, `        \nc`],
  'templates nest': ['`a${b + `c${d}`}e` f', '` ${b + ` ${d}`} ` f'],
  'braces inside a template are counted': ['`${{ a: 1 }.a}x` b', '`${{ a: 1 }.a} ` b'],
  'a regular expression with a quote does not start a string': [`a = /['"]/; b`, `a = /    /; b`],
  'a slash in a character class does not end the expression': ['a = /[/]/; b', 'a = /   /; b'],
  'a division is not a regular expression': [`a = b / c; d = 'e' / 2`, `a = b / c; d = ' ' / 2`],
};

for (const [name, [text, code]] of Object.entries(scans)) {
  test(`source text: ${name}`, () => assert.equal(scanSource(text).code, code));
}
