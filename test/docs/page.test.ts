/** How pages are read: what is run, what is not, and what is a fault of the page. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksOf, commandsOf, faultsOf } from '#test/docs/page.ts';
import { isSameOutput } from '#test/docs/same-output.ts';

const page = (...lines: string[]) => lines.join('\n');
const FENCE = '```';

test('commands of sh', () => {
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

test('commands of a console, with what they print', () => {
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

const faults: Record<string, { text: string; want: RegExp | undefined }> = {
  'a block without a language': { text: page(FENCE, 'x', FENCE), want: /line 1: the block says nothing/ },
  'a language that nobody runs': { text: page(`${FENCE}bash`, 'x', FENCE), want: /"bash"/ },
  'commands in a text': { text: page(`${FENCE}text`, '$ kubectl get vms', FENCE), want: /console block/ },
  'a part of an object': { text: page(`${FENCE}yaml`, 'spec: {}', FENCE), want: /<!-- patch: KIND\/NAME -->/ },
  'a part that says of what': {
    text: page('<!-- patch: vm/a -->', `${FENCE}yaml`, 'spec: {}', FENCE),
    want: undefined,
  },
  'a part that is not run': {
    text: page('<!-- not run: has no end -->', `${FENCE}yaml`, 'spec: {}', FENCE),
    want: undefined,
  },
  'a whole object': { text: page(`${FENCE}yaml`, 'apiVersion: v1', 'kind: X', FENCE), want: undefined },
};
for (const [title, { text, want }] of Object.entries(faults)) {
  test(`faults of ${title}`, () => {
    const found = faultsOf(text);
    if (want === undefined) assert.deepEqual(found, []);
    else assert.match(found.join('\n'), want);
  });
}

const outputs: Record<string, { shown: string; printed: string; want: boolean }> = {
  'the same but for ages and widths': {
    shown: 'NAME  AGE\nhello  5s',
    printed: 'NAME    AGE\nhello   12s\n',
    want: true,
  },
  'another word': { shown: 'NAME\nhello', printed: 'NAME\nworld', want: false },
  'a line less': { shown: 'a\nb', printed: 'a', want: false },
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
