/** Tests that every language rule finds its violations and accepts plain sentences. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bannedWords, docComments, missingFiles, sharedNameProblems } from '#test/tidy/language.ts';
import type { Rule } from '#test/tidy/rules.ts';

interface Case {
  readonly rule: Rule;
  readonly path?: string;
  readonly text: string;
  /** The lines of the findings. */
  readonly want: number[];
}

const cases: Record<string, Case> = {
  'a banned word in a comment': { rule: bannedWords, text: '\n// Whoever calls it.', want: [2] },
  'a banned word in a message': { rule: bannedWords, text: "f('the user is told of it')", want: [1] },
  'a banned word in a template': { rule: bannedWords, text: 'f(`${a} is told of ${b}`)', want: [1] },
  'a banned word in a document': { rule: bannedWords, path: 'docs/x.md', text: 'a\nmended', want: [2] },
  'a banned name': { rule: bannedWords, text: 'const toldOf = 1;\nclass Purse {}', want: [1, 2] },
  'a banned name inside of another': { rule: bannedWords, text: 'function isToldTo() {}', want: [1] },
  'a name that only contains the letters': {
    rule: bannedWords,
    text: 'const untolded = isBellows(desktop);',
    want: [],
  },
  'a plain sentence': { rule: bannedWords, text: '// Reports the change to the user.', want: [] },
  'a doc comment with a relative clause': { rule: docComments, text: '/** What is missing. */\nlet a;', want: [1] },
  'a longer doc comment with a relative clause': {
    rule: docComments,
    text: '\n/**\n * Whether it runs.\n */',
    want: [2],
  },
  'a doc comment that is a statement': { rule: docComments, text: '/** Returns what is missing. */', want: [] },
  'an inline comment may begin so': { rule: docComments, text: '// Where it ends.', want: [] },
};

for (const [name, { rule, path = 'src/lib/x.ts', text, want }] of Object.entries(cases)) {
  test(`language rule: ${name}`, () => {
    const findings = rule({ path, text });
    assert.deepEqual(
      findings.map(({ line }) => line),
      want,
      JSON.stringify(findings),
    );
  });
}

test('a name that two modules export needs a reason, and a reason needs two modules', () => {
  const text = 'export function run() {}\nexport type Plan = {};';
  const files = ['src/a/x.ts', 'src/b/x.ts', 'src/b/x.test.ts', 'src/b/testing/y.ts'].map((path) => ({ path, text }));
  const [plan, once, ...more] = sharedNameProblems(files, { run: 'verbs', gone: 'no longer' }).toSorted();
  assert.match(plan ?? '', /^Plan is exported by src\/a\/x.ts, src\/b\/x.ts: /);
  assert.match(once ?? '', /^gone is exported once/);
  assert.deepEqual(more, []);
});

test('a file that a comment or a document mentions must exist', () => {
  const files = [
    { path: 'src/a/x.ts', text: '// See a/x.ts and x.ts, not a/gone.ts.\nf("never.ts");' },
    { path: 'docs/page.md', text: 'See `src/a/x.ts`\nand `gone.ts`.' },
  ];
  assert.deepEqual(missingFiles(files), [
    'src/a/x.ts:1 mentions a/gone.ts, which does not exist',
    'docs/page.md:2 mentions gone.ts, which does not exist',
  ]);
});
