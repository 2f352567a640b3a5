import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { XML_LIMITS, XmlError } from '#lib/xml/xml-scan.ts';
import { attributeOf, childNamed, childrenNamed, parseXml } from '#lib/xml/xml.ts';
import { isXmlName, leaf, printXml, xml } from '#lib/xml/xml-writer.ts';

const bytes = (text: string, encoding: BufferEncoding = 'utf8') => Buffer.from(text, encoding);

const refused: Record<string, { input: string | Uint8Array; why: RegExp }> = {
  'an empty text': { input: '', why: /missing root element/ },
  'a text that is not XML': { input: 'MZ', why: /missing root element/ },
  'mismatched tags, with the line': { input: '<a>\n<b>\n</c></a>', why: /line \d+: .*mismatch/ },
  'an element that does not end': { input: '<a><b></b>', why: /unclosed/ },
  'two roots': { input: '<a/><b/>', why: /line 1/ },
  'text after the root': { input: '<a/>x', why: /Extra content/ },
  'a value without quotes': { input: '<a b=1/>', why: /line 1: attribute/ },
  'an attribute twice': { input: '<a b="1" b="2"/>', why: /redefined/ },
  'an undeclared prefix': { input: '<p:a/>', why: /NamespaceError/ },
  'a tag within a tag': { input: '<a <b/>', why: /a tag begins within a tag/ },
  'a comment without an end': { input: '<a><!-- ', why: /a comment does not end/ },
  'a value without an end': { input: '<a b="1/>', why: /does not end/ },
  'a DOCTYPE': { input: '<!DOCTYPE a><a/>', why: /line 1: DOCTYPE and other declarations are not allowed/ },
  'entities that expand to a huge text': {
    input: '<?xml version="1.0"?>\n<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n<l>&b;</l>',
    why: /line 2: DOCTYPE/,
  },
  'an external entity': { input: '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', why: /DOCTYPE/ },
  'a declaration within the root': { input: '<a><!ELEMENT a ANY></a>', why: /declarations are not allowed/ },
  'an undeclared entity': { input: '<a>\n&nbsp;</a>', why: /line 2: only the entities amp/ },
  'an entity in a value': { input: '<a b="&x;"/>', why: /only the entities/ },
  'an ampersand alone': { input: '<a>a & b</a>', why: /only the entities/ },
  'a character reference to NUL': { input: '<a>&#0;</a>', why: /&#0; is not an XML character/ },
  'a character reference to a surrogate': { input: '<a>&#xD800;</a>', why: /is not an XML character/ },
  'a character reference beyond Unicode': { input: '<a>&#x110000;</a>', why: /is not an XML character/ },
  'a NUL': { input: '<a>\0</a>', why: /a character that XML does not allow/ },
  'bytes that are not UTF-8': {
    input: Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0x3c, 0x2f, 0x61, 0x3e]),
    why: /not encoded in UTF-8/,
  },
  'UTF-16': { input: bytes('\uFEFF<a/>', 'utf16le'), why: /not encoded in UTF-8/ },
  'another encoding in the declaration': {
    input: '<?xml version="1.0" encoding="UTF-7"?><a/>',
    why: /the encoding is "utf-7"; expected UTF-8/,
  },
  'elements that are nested too deep': {
    input: '<a>'.repeat(65) + '</a>'.repeat(65),
    why: /nested deeper than 64/,
  },
  'too many nodes': { input: `<a>${'<b/>'.repeat(100_001)}</a>`, why: /more than 100000 nodes/ },
  'too many attributes in total': {
    input: `<a>${'<b c="1" d="2"/>'.repeat(34_000)}</a>`,
    why: /more than 100000 nodes/,
  },
  'too many attributes of one element': {
    input: `<a ${Array.from({ length: 65 }, (_, i) => `b${i}="1"`).join(' ')}/>`,
    why: /more than 64 attributes/,
  },
  'too many bytes': { input: Buffer.alloc(XML_LIMITS.bytes + 1, 0x20), why: /more than 8388608/ },
};

for (const [name, { input, why }] of Object.entries(refused)) {
  test(`refuses ${name}`, () => {
    assert.throws(
      () => parseXml(input),
      (error: unknown) => error instanceof XmlError && why.test(error.message),
    );
  });
}

test('reads names by namespace, texts, CDATA, entities and line numbers', () => {
  const root = parseXml(
    bytes(
      '\uFEFF<?xml version="1.0" encoding="utf-8"?>\r\n<!-- <x> & -->\n<o:a xmlns:o="urn:o" o:id="1" id="2">\n<b>x &lt;<![CDATA[<&>]]>&#x1F600;</b><o:b/></o:a>',
    ),
  );
  assert.equal(root.namespace, 'urn:o');
  assert.equal(root.name, 'a');
  assert.equal(attributeOf(root, 'id', 'urn:o'), '1');
  assert.equal(attributeOf(root, 'id', ''), '2');
  assert.equal(attributeOf(root, 'xmlns'), undefined);
  assert.equal(childNamed(root, 'b')?.text, 'x <<&>\u{1F600}');
  assert.equal(childNamed(root, 'b')?.line, 4);
  assert.equal(childrenNamed(root, 'b').length, 2);
  assert.equal(childrenNamed(root, 'b', 'urn:o').length, 1);
  assert.equal(childNamed(undefined, 'b'), undefined);
});

test('reads U+FFFD like any other character', () => assert.equal(parseXml('<a>\u{FFFD}</a>').text, '\u{FFFD}'));

test('reads a document at the limits', () => {
  assert.equal(parseXml('<a>'.repeat(64) + '</a>'.repeat(64)).name, 'a');
  assert.equal(parseXml(`<a>${'<b/>'.repeat(20_000)}</a>`).children.length, 20_000);
});

const text = fc
  .string({ unit: 'binary', maxLength: 30 })
  .filter((value) => !/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u.test(value));

test('reads back what it has written, for any text', () => {
  fc.assert(
    fc.property(text, text, (value, content) => {
      const root = parseXml(printXml(xml('a', { b: value, c: undefined }, [leaf('d', content), undefined])));
      assert.deepEqual(root.attributes, [{ namespace: '', name: 'b', value }]);
      assert.equal(childNamed(root, 'd')?.text, content);
    }),
  );
});

test('reads any input or refuses it with an XmlError', () => {
  const piece = fc.constantFrom(
    '<',
    '>',
    '</a>',
    '<a>',
    '<a ',
    '"',
    "'",
    '=',
    '&',
    '&amp;',
    '<!--',
    '-->',
    '<?',
    '?>',
    '<![CDATA[',
    ']]>',
    'x',
    ' ',
    '/',
    '\n',
    'xmlns',
    ':',
    '<!DOCTYPE',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      try {
        parseXml(pieces.join(''));
      } catch (error) {
        assert.ok(error instanceof XmlError, String(error));
      }
    }),
    { numRuns: 500 },
  );
});

test('refuses to write illegal characters and invalid names', () => {
  assert.throws(() => printXml(xml('a', {}, 'x\0')), /Cannot write .* as XML/);
  assert.throws(() => printXml(xml('a', { b: '\uD800' })), /Cannot write/);
  assert.throws(() => printXml(xml('a b')), /Invariant/);
  assert.throws(() => printXml(xml('a', { '"': '' })), /Invariant/);
  assert.equal(isXmlName('model'), true);
  for (const name of ['', '1', 'a b', 'a:b', 'xmlns', 'é']) assert.equal(isXmlName(name), false, name);
});
