import assert from 'node:assert/strict';
import { test } from 'node:test';
import { customKinds } from '#api/custom-kinds/all-kinds.ts';
import { findOutdated } from '../api-reference.ts';
import { referencePages } from './pages.ts';

test('docs/api is up to date; node scripts/api-reference.ts generates it', () => {
  assert.deepEqual(findOutdated(), []);
});

test('lists fields of lists and maps, with required ones and limits', () => {
  const text = referencePages(customKinds).get('virtualmachine.md') ?? '';
  assert.match(text, /\| `spec\.template` \| object \| Required\. The template of the instance/);
  assert.match(text, /\| `spec\.template\.spec\.domain\.devices\.disks\[\]\.disk\.bus` \| string \|/);
  assert.match(text, /\| `spec\.template\.spec\.domain\.memory\.guest` \| quantity \|/);
  assert.match(text, /\| `status\.conditions\[\]\.type` \| string \| Required\./);
});
