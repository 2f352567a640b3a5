import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineStream, selectLines, untimedRefusal } from '#node/endpoint/log-lines.ts';
import { readLogOptions } from '#node/endpoint/log-options.ts';

const NOW = Date.parse('2026-01-01T00:01:00Z');
const PLAIN = 'one\ntwo\nthree\n';
const TIMED = '2026-01-01T00:00:10Z one\n2026-01-01T00:00:20Z two\n2026-01-01T00:00:30Z three\n';

const cases: Record<string, { log: string; timed?: boolean; query: string; want: string }> = {
  'all of it': { log: PLAIN, query: '', want: PLAIN },
  'the last line': { log: PLAIN, query: 'tailLines=1', want: 'three\n' },
  'the last lines, the last of them not ended': { log: 'one\ntwo\nthr', query: 'tailLines=2', want: 'two\nthr' },
  'more lines than there are': { log: PLAIN, query: 'tailLines=9', want: PLAIN },
  'no lines': { log: PLAIN, query: 'tailLines=0', want: '' },
  'empty lines count': { log: 'a\n\n\n', query: 'tailLines=2', want: '\n\n' },
  'nothing was written': { log: '', query: 'tailLines=2', want: '' },
  'times are left out': { log: TIMED, timed: true, query: '', want: PLAIN },
  'times are shown': { log: TIMED, timed: true, query: 'timestamps=true', want: TIMED },
  'the last seconds': { log: TIMED, timed: true, query: 'sinceSeconds=40', want: 'two\nthree\n' },
  'from a time on': { log: TIMED, timed: true, query: 'sinceTime=2026-01-01T00:00:25Z', want: 'three\n' },
  'the last lines of those': { log: TIMED, timed: true, query: 'sinceSeconds=40&tailLines=1', want: 'three\n' },
};
for (const [name, { log, timed = false, query, want }] of Object.entries(cases)) {
  test(name, () => {
    const options = readLogOptions(new URLSearchParams(query), NOW);
    assert.equal(selectLines(Buffer.from(log), timed, options).toString(), want);
  });
}

const bad: Record<string, RegExp> = {
  'tailLines=-1': /tailLines is "-1"/,
  'limitBytes=many': /limitBytes is "many"/,
  'sinceTime=yesterday': /sinceTime is "yesterday"/,
  'previous=true': /previous terminated container/,
};
for (const [query, message] of Object.entries(bad)) {
  test(`refuses ${query}`, () => {
    assert.throws(() => readLogOptions(new URLSearchParams(query), NOW), { code: 400, message });
  });
}

test('a log without times says so when it is asked for them', () => {
  const asked = (query: string) => untimedRefusal('compute', readLogOptions(new URLSearchParams(query), NOW))?.message;
  assert.match(asked('timestamps=true') ?? '', /"compute" has no times/);
  assert.match(asked('sinceSeconds=5') ?? '', /since cannot be served/);
  assert.equal(asked('tailLines=5&follow=true'), undefined);
});

test('lines that come in pieces lose their time once', () => {
  const lines = new LineStream({ timestamps: false });
  const parts = [...TIMED.match(/.{1,7}/gs)!].map((part) => lines.push(Buffer.from(part)).toString());
  assert.equal(parts.join(''), PLAIN);
});
