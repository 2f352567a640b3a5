import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineStream, selectLines, refuseUntimed } from '#node/endpoint/log-lines.ts';
import { parseContainerLogOptions } from '#node/endpoint/log-options.ts';

const NOW = Date.parse('2026-01-01T00:01:00Z');
const PLAIN = 'one\ntwo\nthree\n';
const TIMED = '2026-01-01T00:00:10Z one\n2026-01-01T00:00:20Z two\n2026-01-01T00:00:30Z three\n';

const cases: Record<string, { log: string; timed?: boolean; query: string; want: string }> = {
  'selects the whole log by default': { log: PLAIN, query: '', want: PLAIN },
  'selects the last line': { log: PLAIN, query: 'tailLines=1', want: 'three\n' },
  'counts an incomplete last line': { log: 'one\ntwo\nthr', query: 'tailLines=2', want: 'two\nthr' },
  'selects the whole log if tailLines is larger': { log: PLAIN, query: 'tailLines=9', want: PLAIN },
  'selects nothing for tailLines=0': { log: PLAIN, query: 'tailLines=0', want: '' },
  'counts empty lines': { log: 'a\n\n\n', query: 'tailLines=2', want: '\n\n' },
  'selects nothing of an empty log': { log: '', query: 'tailLines=2', want: '' },
  'removes the times by default': { log: TIMED, timed: true, query: '', want: PLAIN },
  'keeps the times on request': { log: TIMED, timed: true, query: 'timestamps=true', want: TIMED },
  'selects the lines of the last seconds': { log: TIMED, timed: true, query: 'sinceSeconds=40', want: 'two\nthree\n' },
  'selects the lines after a time': {
    log: TIMED,
    timed: true,
    query: 'sinceTime=2026-01-01T00:00:25Z',
    want: 'three\n',
  },
  'selects the last lines after a time': {
    log: TIMED,
    timed: true,
    query: 'sinceSeconds=40&tailLines=1',
    want: 'three\n',
  },
};
for (const [sentence, { log, timed = false, query, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const options = parseContainerLogOptions(new URLSearchParams(query), NOW);
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
    assert.throws(() => parseContainerLogOptions(new URLSearchParams(query), NOW), { code: 400, message });
  });
}

test('refuses times for a log without times', () => {
  const refusal = (query: string) =>
    refuseUntimed('compute', parseContainerLogOptions(new URLSearchParams(query), NOW))?.message;
  assert.match(refusal('timestamps=true') ?? '', /"compute" with timestamps: the log has no times/);
  assert.match(refusal('sinceSeconds=5') ?? '', /"compute" with since: the log has no times/);
  assert.equal(refusal('tailLines=5&follow=true'), undefined);
});

test('removes the time of each line once if lines arrive in pieces', () => {
  const lines = new LineStream({ timestamps: false });
  const parts = [...TIMED.match(/.{1,7}/gs)!].map((part) => lines.push(Buffer.from(part)).toString());
  assert.equal(parts.join(''), PLAIN);
});
