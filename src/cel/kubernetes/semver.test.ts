import { Budget } from '#cel/limits/budget.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fault, callForValue, testCalls } from '#cel/extensions/testing/call.ts';
import { CelSemver, semverLibrary } from '#cel/kubernetes/semver.ts';

const budget = () => new Budget(1000);

function semver(text: string): CelSemver {
  const value = callForValue(semverLibrary, 'semver', [text]);
  assert.ok(value instanceof CelSemver);
  return value;
}

const refused: Record<string, string> = {
  '': 'Version string empty',
  'v1.0': 'No Major.Minor.Patch elements found',
  'v1.0.0': 'Invalid character(s) found in major number "v1"',
  '01.0.0': 'Major number must not contain leading zeroes "01"',
  '1.x.0': 'Invalid character(s) found in minor number "x"',
  '1.0.': 'strconv.ParseUint: parsing "": invalid syntax',
  '1.0.99999999999999999999': 'strconv.ParseUint: parsing "99999999999999999999": value out of range',
  '1.0.0-': 'Prerelease is empty',
  '1.0.0-01': 'Numeric PreRelease version must not contain leading zeroes "01"',
  '1.0.0-a_b': 'Invalid character(s) found in prerelease "a_b"',
  '1.0.0+': 'Build meta data is empty',
  '1.0.0+a_b': 'Invalid character(s) found in build meta data "a_b"',
};
for (const [text, why] of Object.entries(refused)) {
  testCalls(semverLibrary, {
    [`semver refuses ${JSON.stringify(text)}`]: ['semver', [text], fault(why)],
    [`isSemver says no to ${JSON.stringify(text)}`]: ['isSemver', [text], false],
  });
}

testCalls(semverLibrary, {
  'isSemver accepts all parts': ['isSemver', ['1.2.3-beta.1+build.5'], true],
  major: ['major', [semver('1.2.3')], 1n],
  minor: ['minor', [semver('1.2.3-x')], 2n],
  patch: ['patch', [semver('1.2.3+y')], 3n],
});

test('versions are ordered', () => {
  const rising = [
    '0.9.0',
    '1.0.0-1',
    '1.0.0-2',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-beta',
    '1.0.0',
    '1.0.1',
    '1.10.0',
  ];
  for (const [i, a] of rising.entries()) {
    for (const [j, b] of rising.entries()) {
      const pair = [semver(a), semver(b)];
      assert.equal(callForValue(semverLibrary, 'compareTo', pair), BigInt(Math.sign(i - j)), `${a} ${b}`);
      assert.equal(callForValue(semverLibrary, 'isLessThan', pair), i < j, `${a} ${b}`);
      assert.equal(callForValue(semverLibrary, 'isGreaterThan', pair), i > j, `${a} ${b}`);
    }
  }
  assert.equal(semver('1.0.0+a').equals(semver('1.0.0+b'), budget()), true);
});
