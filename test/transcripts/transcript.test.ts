import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTranscript, planeKindOf, renderTranscript, type Step } from '#test/transcripts/transcript.ts';

const both = (text: string, exit = 0) => ({ '1.20': { text, exit }, '1.32': { text, exit } });

const cases: Record<string, { text: string; steps: Step[]; ending?: string[] }> = {
  'a command, its output and its exit code': {
    text: '# Prose.\n\n$ kubectl get x\nerror: no x\n[exit 1]\n',
    steps: [{ prose: ['# Prose.', ''], only: undefined, command: 'kubectl get x', outputs: both('error: no x', 1) }],
  },
  'a command that prints nothing': {
    text: '$ true\n\n$ false\n[exit 1]\n',
    steps: [
      { prose: [], only: undefined, command: 'true', outputs: both('') },
      { prose: [''], only: undefined, command: 'false', outputs: both('', 1) },
    ],
  },
  'a command of several lines': {
    text: '$ cat <<END\n> a\n>\n> b\n> END\na\n\nb\n',
    steps: [{ prose: [], only: undefined, command: 'cat <<END\na\n\nb\nEND', outputs: both('a\n\nb') }],
  },
  'empty lines within an output are kept, those after it are prose': {
    text: '$ one\n\na\n\nb\n\n\n# Next.\n$ two\n',
    steps: [
      { prose: [], only: undefined, command: 'one', outputs: both('\na\n\nb') },
      { prose: ['', '', '# Next.'], only: undefined, command: 'two', outputs: both('') },
    ],
  },
  'an output for each kubectl': {
    text: '$ run\n[1.20]\nold\n[exit 1]\n[1.32]\nnew\n\n$ next\n',
    steps: [
      {
        prose: [],
        only: undefined,
        command: 'run',
        outputs: { '1.20': { text: 'old', exit: 1 }, '1.32': { text: 'new', exit: 0 } },
      },
      { prose: [''], only: undefined, command: 'next', outputs: both('') },
    ],
  },
  'a command for one kubectl': {
    text: '[1.32] $ run\nnew\n',
    steps: [{ prose: [], only: '1.32', command: 'run', outputs: { '1.32': { text: 'new', exit: 0 } } }],
  },
  'output that looks like the format': {
    text: '$ run\n\\$ no command\n\\# no prose\n\\> more\n\\[exit 1]\n\\\\\n#!/bin/sh\n',
    steps: [
      {
        prose: [],
        only: undefined,
        command: 'run',
        outputs: both('$ no command\n# no prose\n> more\n[exit 1]\n\\\n#!/bin/sh'),
      },
    ],
  },
  'prose at the end': {
    text: '$ run\nout\n\n# The end.\n',
    steps: [{ prose: [], only: undefined, command: 'run', outputs: both('out') }],
    ending: ['', '# The end.'],
  },
};

for (const [name, { text, steps, ending = [] }] of Object.entries(cases)) {
  test(`transcript format: ${name}`, () => {
    assert.deepEqual(parseTranscript(text), { steps, ending });
    assert.equal(renderTranscript({ steps, ending }), text);
  });
}

test('equal outputs are written once', () => {
  const { steps } = parseTranscript('$ run\n[1.20]\nsame\n[1.32]\nsame\n');
  assert.equal(renderTranscript({ steps, ending: [] }), '$ run\nsame\n');
});

test('an output known for one kubectl only keeps its mark', () => {
  const steps: Step[] = [{ prose: [], command: 'run', outputs: { '1.20': { text: 'old', exit: 0 } } }];
  assert.equal(renderTranscript({ steps, ending: [] }), '$ run\n[1.20]\nold\n');
});

const refused: Record<string, { text: string; message: RegExp }> = {
  'output without a command': { text: 'hello\n', message: /line 1 comes before the first command/ },
  'an unknown kubectl': { text: '$ run\n[1.99]\nx\n', message: /line 2 names the unknown kubectl 1\.99/ },
  'output before a version': { text: '$ run\nx\n[1.20]\ny\n', message: /output before the first \[version\]/ },
};

for (const [name, { text, message }] of Object.entries(refused)) {
  test(`transcript format refuses ${name}`, () => assert.throws(() => parseTranscript(text), message));
}

test('the first line can request a plane with VMs', () => {
  assert.equal(planeKindOf('# plane: fake\n# Prose.\n$ true\n'), 'fake');
  assert.equal(planeKindOf('# Prose.\n# plane: fake\n$ true\n'), 'engine');
  assert.throws(() => planeKindOf('# plane: lathe\n'), /unknown plane lathe/);
});
