/** Tests of the page parser: the blocks that are run, and the errors that are found. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksOf, commandsOf, findPageErrors } from '#test/docs/page.ts';
import { isSameOutput } from '#test/docs/same-output.ts';

const page = (...lines: string[]) => lines.join('\n');
const FENCE = '```';

test('the commands of a sh block', () => {
  const [block] = blocksOf(
    page(
      `${FENCE}sh`,
      'a   # says',
      '# a comment',
      'b \\',
      '  c',
      '',
      'd <<END',
      'x',
      'END',
      'e  # refused: it is kept',
      FENCE,
    ),
  );
  assert.deepEqual(
    commandsOf(block!).map(({ text, line, fails }) => [text, line, fails]),
    [
      ['a   # says', 2, false],
      ['b \\\n  c', 4, false],
      ['d <<END\nx\nEND', 7, false],
      ['e  # refused: it is kept', 10, true],
    ],
  );
});

test('the commands of a console block, with their outputs', () => {
  const [block] = blocksOf(page(`${FENCE}console`, '$ a', 'one', 'two', '$ b', '$ c', 'Error from server: no', FENCE));
  assert.deepEqual(
    commandsOf(block!).map(({ text, output, fails }) => [text, output, fails]),
    [
      ['a', 'one\ntwo', false],
      ['b', undefined, false],
      ['c', 'Error from server: no', true],
    ],
  );
});

const errorCases: Record<string, { text: string; want: RegExp | undefined }> = {
  'a block without a language': { text: page(FENCE, 'x', FENCE), want: /line 1: the block states no language/ },
  'an unknown language': { text: page(`${FENCE}bash`, 'x', FENCE), want: /"bash"/ },
  'commands in a text block': { text: page(`${FENCE}text`, '$ kubectl get vms', FENCE), want: /console block/ },
  'a part of an object': { text: page(`${FENCE}yaml`, 'spec: {}', FENCE), want: /<!-- patch: KIND\/NAME -->/ },
  'a part with a patch directive': {
    text: page('<!-- patch: vm/a -->', `${FENCE}yaml`, 'spec: {}', FENCE),
    want: undefined,
  },
  'a part that is not run': {
    text: page('<!-- not run: has no end -->', `${FENCE}yaml`, 'spec: {}', FENCE),
    want: undefined,
  },
  'a whole object': { text: page(`${FENCE}yaml`, 'apiVersion: v1', 'kind: X', FENCE), want: undefined },
};
for (const [title, { text, want }] of Object.entries(errorCases)) {
  test(`errors of ${title}`, () => {
    const found = findPageErrors(text);
    if (want === undefined) assert.deepEqual(found, []);
    else assert.match(found.join('\n'), want);
  });
}

const outputs: Record<string, { shown: string; printed: string; want: boolean }> = {
  'the same except for ages and widths': {
    shown: 'NAME  AGE\nhello  5s',
    printed: 'NAME    AGE\nhello   12s\n',
    want: true,
  },
  'another word': { shown: 'NAME\nhello', printed: 'NAME\nworld', want: false },
  'a missing line': { shown: 'a\nb', printed: 'a', want: false },
  'any lines': { shown: 'a\n...\nc', printed: 'a\nb\nb\nc', want: true },
  'any text': { shown: 'denied ...: no', printed: 'denied by policy: no', want: true },
  'other text': { shown: 'denied ...: no', printed: 'denied by policy: yes', want: false },
  'another uuid': {
    shown: 'u 48798552-118c-4b6d-a039-fec478c404e7',
    printed: 'u 11111111-118c-4b6d-a039-fec478c404e7',
    want: true,
  },
};
for (const [title, { shown, printed, want }] of Object.entries(outputs)) {
  test(`output: ${title}`, () => assert.equal(isSameOutput(shown, printed), want));
}
