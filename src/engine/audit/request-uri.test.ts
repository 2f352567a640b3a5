import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestUri } from '#engine/audit/request-uri.ts';

const cases: Record<string, { path?: string; query: string; want: string }> = {
  'is the path without a query': { query: '', want: '/p' },
  'shows known parameters': {
    query: 'dryRun=All&fieldManager=a b&force=true&labelSelector=a%3Db',
    want: '/p?dryRun=All&fieldManager=a+b&force=true&labelSelector=a%3Db',
  },
  'redacts other parameters': {
    query: 'token=hunter2&access_token=hunter2&continue=abc&dryrun=x',
    want: '/p?token=REDACTED&access_token=REDACTED&continue=REDACTED&dryrun=REDACTED',
  },
  'is bounded': { path: `/${'x'.repeat(5000)}`, query: '', want: `/${'x'.repeat(2047)}...TRUNCATED` },
  'has a limited number of parameters': {
    query: 'watch=1&'.repeat(50),
    want: `/p?${Array.from({ length: 32 }, () => 'watch=1').join('&')}`,
  },
};

for (const [name, { path = '/p', query, want }] of Object.entries(cases)) {
  test(`the address ${name}`, () => assert.equal(requestUri(path, new URLSearchParams(query)), want));
}
