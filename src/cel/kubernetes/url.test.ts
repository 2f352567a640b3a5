import { Budget } from '#cel/limits/budget.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fault, callForValue, plain, testCalls } from '#cel/extensions/testing/call.ts';
import { CelUrl, urlLibrary } from '#cel/kubernetes/url.ts';

const budget = () => new Budget(1000);

function url(text: string): CelUrl {
  const value = callForValue(urlLibrary, 'url', [text]);
  assert.ok(value instanceof CelUrl);
  return value;
}

const refused: Record<string, string> = {
  '': 'parse "": empty url',
  '../relative': 'parse "../relative": invalid URI for request',
  'example.com': 'parse "example.com": invalid URI for request',
  ':80': 'parse ":80": missing protocol scheme',
  'https://a b.com/': 'parse "https://a b.com/": invalid character " " in host name',
  'https://example.com:x/': 'parse "https://example.com:x/": invalid port ":x" after host',
  'https://[::1/': 'parse "https://[::1/": missing \']\' in host',
  'https://u ser@example.com/': 'parse "https://u ser@example.com/": net/url: invalid userinfo',
  '/%zz': 'parse "/%zz": invalid URL escape "%zz"',
  'https://ex%41mple.com': 'parse "https://ex%41mple.com": invalid URL escape "%41"',
  'https://a\nb': 'parse "https://a\\nb": net/url: invalid control character in URL',
};
for (const [text, why] of Object.entries(refused)) {
  testCalls(urlLibrary, {
    [`url refuses ${JSON.stringify(text)}`]: [
      'url',
      [text],
      fault(`URL parse error during conversion from string: ${why}`),
    ],
    [`isURL says no to ${JSON.stringify(text)}`]: ['isURL', [text], false],
  });
}

testCalls(urlLibrary, {
  'isURL accepts an absolute path': ['isURL', ['/absolute/path'], true],
  'isURL accepts an opaque URL': ['isURL', ['mailto:somebody@example.com'], true],
  'getScheme is lower case': ['getScheme', [url('HTTPS://example.com')], 'https'],
  'a path has no scheme': ['getScheme', [url('/path')], ''],
  'getHost includes the port': ['getHost', [url('https://user:pass@example.com:8080/')], 'example.com:8080'],
  'getHost of IPv6': ['getHost', [url('https://[::1]:80/')], '[::1]:80'],
  'getHostname excludes the port': ['getHostname', [url('https://example.com:80/')], 'example.com'],
  'getHostname of IPv6': ['getHostname', [url('https://[::1]:80/')], '::1'],
  'getHostname with a zone': ['getHostname', [url('https://[fe80::1%25en0]/')], 'fe80::1%en0'],
  getPort: ['getPort', [url('https://example.com:80/')], '80'],
  'getPort of a URL without a port is empty': ['getPort', [url('https://example.com/')], ''],
  'getEscapedPath keeps a well-formed path': ['getEscapedPath', [url('https://example.com/a%2Fb/(c)?x')], '/a%2Fb/(c)'],
  'getEscapedPath escapes invalid characters': [
    'getEscapedPath',
    [url('https://example.com/with space/é%41')],
    '/with%20space/%C3%A9A',
  ],
  'getEscapedPath of a URL without a path is empty': ['getEscapedPath', [url('https://example.com')], ''],
  'getEscapedPath ends at the fragment': ['getEscapedPath', [url('https://example.com/a#b')], '/a'],
  'two slashes without scheme are a host': ['getHost', [url('//example.com/a')], 'example.com'],
  'getQuery collects values': [
    'getQuery',
    [url('https://example.com/?k=a&k=b+c&e&x=%26#k=d')],
    new Map<string, string[]>([
      ['k', ['a', 'b c']],
      ['e', ['']],
      ['x', ['&']],
    ]),
  ],
  'getQuery skips invalid pairs': ['getQuery', [url('/?a=%zz&b;c=1&d=1')], new Map([['d', ['1']]])],
  'getQuery of a URL without a query is empty': ['getQuery', [url('/path')], new Map()],
});

test('URLs are equal if they are written the same', () => {
  assert.equal(url('HTTP://example.com/a').equals(url('http://example.com/a'), budget()), true);
  assert.equal(url('http://example.com/a').equals(url('http://example.com/a?'), budget()), false);
  assert.equal(url('http://example.com/a').equals(url('http://example.com/a#'), budget()), false);
  assert.equal(plain(url('/a').parts.query as undefined), undefined);
});
