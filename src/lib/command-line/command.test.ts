import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findArgCountError, type ArgCount } from '#lib/command-line/command.ts';

const cases: Record<string, { takes: ArgCount; received: number; want: string | undefined }> = {
  'the expected number': { takes: 1, received: 1, want: undefined },
  'too few': { takes: 2, received: 1, want: 'accepts 2 arg(s), received 1' },
  'too many': { takes: 0, received: 1, want: 'accepts 0 arg(s), received 1' },
  'the minimum of a range': { takes: [0, 1], received: 0, want: undefined },
  'the maximum of a range': { takes: [0, 1], received: 1, want: undefined },
  'more than a range': { takes: [0, 1], received: 2, want: 'accepts between 0 and 1 arg(s), received 2' },
  'less than a range': { takes: [1, 2], received: 0, want: 'accepts between 1 and 2 arg(s), received 0' },
};
for (const [title, { takes, received, want }] of Object.entries(cases)) {
  test(`arguments: ${title}`, () => assert.equal(findArgCountError(takes, received), want));
}
