import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finding } from '#doctor/finding.ts';
import { tourRefusalText } from './doctor.ts';

const found = (what: string, state: Finding['state']): Finding => ({
  what,
  state,
  message: `message about ${what}`,
  fix: 'install it',
});

const cases: Record<string, { of: Finding[]; want: RegExp }> = {
  'nothing if everything works': { of: [found('QEMU', 'works'), found('swtpm', 'works')], want: /^$/ },
  'nothing if only other features are limited': {
    of: [found('KVM', 'limited'), found('bridges', 'limited')],
    want: /^$/,
  },
  'requirements of every VM': {
    of: [found('QEMU', 'missing')],
    want: /^Cannot start the tour .*\n\nmissing {2}QEMU .*\n +fix: install it\n/,
  },
  'additional requirements of the tour only': {
    of: [found('KVM', 'limited'), found('swtpm', 'limited')],
    want: /^[^\n]*\n\nmissing {2}swtpm [^\n]*\n[^\n]*fix[^\n]*\n\nRun selfsame doctor/,
  },
};
for (const [title, { of, want }] of Object.entries(cases)) {
  test(`reports as missing for a tour: ${title}`, () => assert.match(tourRefusalText(of), want));
}
