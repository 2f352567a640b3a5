import assert from 'node:assert/strict';
import { test } from 'node:test';
import { customKinds } from '#api/kinds.ts';
import { outdated } from '../api-reference.ts';
import { referencePages } from './pages.ts';

test('docs/api is what the schemas say; node scripts/api-reference.ts makes it so', () => {
  assert.deepEqual(outdated(), []);
});

test('fields of lists and maps, with what is required and what is possible', () => {
  const text = referencePages(customKinds).get('virtualmachine.md') ?? '';
  assert.match(text, /\| `spec\.template` \| object \| Required\. The template of the instance/);
  assert.match(text, /\| `spec\.template\.spec\.domain\.devices\.disks\[\]\.disk\.bus` \| string \|/);
  assert.match(text, /\| `spec\.template\.spec\.domain\.memory\.guest` \| quantity \|/);
  assert.match(text, /\| `status\.conditions\[\]\.type` \| string \| Required\./);
});
