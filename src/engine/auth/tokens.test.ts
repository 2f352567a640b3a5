import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenFileError, loadTokenFile, parseTokenFile, tokenLookup } from '#engine/auth/tokens.ts';
import type { StaticToken } from '#engine/auth/tokens.ts';

const good: Record<string, [text: string, want: StaticToken[]]> = {
  'an empty file has no tokens': ['', []],
  'three columns are enough': ['t,jane,1', [{ token: 't', user: { name: 'jane', uid: '1', groups: [] } }]],
  'an empty uid is ignored': ['t,jane,', [{ token: 't', user: { name: 'jane', groups: [] } }]],
  'one group needs no quotes': ['t,jane,1,dev', [{ token: 't', user: { name: 'jane', uid: '1', groups: ['dev'] } }]],
  'several groups need quotes': [
    't,jane,1,"dev, ops"',
    [{ token: 't', user: { name: 'jane', uid: '1', groups: ['dev', 'ops'] } }],
  ],
  'doubled quotes are one': ['t,"j""j",1', [{ token: 't', user: { name: 'j"j', uid: '1', groups: [] } }]],
  'blank lines and Windows line ends are accepted': [
    '\uFEFFa,x,1\r\n\r\nb,y,2\r\n',
    [
      { token: 'a', user: { name: 'x', uid: '1', groups: [] } },
      { token: 'b', user: { name: 'y', uid: '2', groups: [] } },
    ],
  ],
};

for (const [name, [text, want]] of Object.entries(good)) {
  test(name, () => assert.deepEqual(parseTokenFile(text), want));
}

const bad: Record<string, [text: string, message: RegExp]> = {
  'too few columns': ['\nsecret,jane', /line 2 has 2 of at least 3 columns/],
  'groups without quotes': ['secret,jane,1,dev,ops', /line 1 has more than 4 columns: several groups need quotes/],
  'an empty token': [',jane,1', /line 1 has an empty token/],
  'a token with white space': ['"secret x",jane,1', /line 1 has a token with white space/],
  'an empty user': ['secret,,1', /line 1 has an empty user name/],
  'a duplicate token': ['secret,a,1\nx,b,2\nsecret,c,3', /line 3 repeats the token of line 1/],
  'an unclosed quote': ['secret,jane,1,"dev', /line 1 has a stray or unclosed quote/],
  'text after a quote': ['secret,"jane"x,1', /line 1 has text after a closing quote/],
};

for (const [name, [text, message]] of Object.entries(bad)) {
  test(`rejects ${name} and reports the line but not the token`, () => {
    assert.throws(
      () => parseTokenFile(text),
      (error) => error instanceof TokenFileError && message.test(error.message) && !error.message.includes('secret'),
    );
  });
}

test('a lookup returns the owner of a token and nothing for others', () => {
  const lookup = tokenLookup(parseTokenFile('a,x,1,dev\nb,y,2'));
  assert.deepEqual(lookup('a'), { name: 'x', uid: '1', groups: ['dev', 'system:authenticated'] });
  assert.deepEqual(lookup('b'), { name: 'y', uid: '2', groups: ['system:authenticated'] });
  for (const other of ['', 'A', 'ab', '__proto__']) assert.equal(lookup(other), undefined);
});

test('the error for a missing file names it', async () => {
  await assert.rejects(loadTokenFile('/nowhere/tokens.csv'), {
    name: 'TokenFileError',
    message: "Cannot read the token file: ENOENT: no such file or directory, open '/nowhere/tokens.csv'",
  });
});
