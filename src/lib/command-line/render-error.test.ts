import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError, UsageError } from '#lib/command-line/command-error.ts';
import { exitCodeOf, renderError } from '#lib/command-line/render-error.ts';

const misused = Object.assign(new UsageError('accepts 1 arg(s), received 0'), {
  usage: ['Usage: a b', 'Try: a --help'],
});

const cases: Record<string, { error: unknown; text: string; code: number }> = {
  'a failure': { error: new CommandError('Cannot do it: no'), text: 'error: Cannot do it: no', code: 1 },
  'a failure of several lines': { error: new CommandError('two:\n  a\n  b\n'), text: 'error: two:\n  a\n  b', code: 1 },
  'a wrong command line': {
    error: misused,
    text: 'error: accepts 1 arg(s), received 0\nUsage: a b\nTry: a --help',
    code: 2,
  },
  'any other value': { error: 'odd', text: 'error: odd', code: 1 },
};
for (const [title, { error, text, code }] of Object.entries(cases)) {
  test(`renders ${title}`, () => {
    assert.equal(renderError(error), text);
    assert.equal(exitCodeOf(error), code);
  });
}
