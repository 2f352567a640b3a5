import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { call, costOf, fault, list, testCalls } from '#cel/extensions/testing/call.ts';
import { stringsLibrary } from '#cel/extensions/strings.ts';
import { stringsReverseLibrary } from '#cel/extensions/testing/strings-reverse.ts';

testCalls(stringsLibrary, {
  'charAt counts code points': ['charAt', ['a😀b', 1n], '😀'],
  'charAt directly after the end is empty': ['charAt', ['abc', 3n], ''],
  'charAt beyond the end is a fault': ['charAt', ['abc', 4n], fault('index out of range: 4')],
  'charAt below zero is a fault': ['charAt', ['abc', -1n], fault('index out of range: -1')],

  'indexOf counts code points': ['indexOf', ['😀😀b', 'b'], 2n],
  'indexOf returns -1 for a missing text': ['indexOf', ['tacocat', 'none'], -1n],
  'indexOf finds an empty text at the start': ['indexOf', ['tacocat', ''], 0n],
  'indexOf starts at the given index': ['indexOf', ['tacocat', 'a', 3n], 5n],
  'indexOf beyond the end finds nothing': ['indexOf', ['tacocat', 'a', 30n], -1n],
  'indexOf from below zero is a fault': ['indexOf', ['tacocat', 'a', -1n], fault('index out of range: -1')],
  'lastIndexOf finds the last': ['lastIndexOf', ['😀a😀a', 'a'], 3n],
  'lastIndexOf of an empty text is the length': ['lastIndexOf', ['ta©o', ''], 4n],
  'lastIndexOf starts at the given index': ['lastIndexOf', ['tacocat', 'a', 3n], 1n],
  'lastIndexOf in an empty text finds nothing': ['lastIndexOf', ['', '@'], -1n],
  'lastIndexOf from beyond the end finds nothing': ['lastIndexOf', ['tacocat', 'a', 30n], -1n],
  'lastIndexOf from below zero is a fault': ['lastIndexOf', ['a', 'a', -1n], fault('index out of range: -1')],

  'lowerAscii leaves other letters alone': ['lowerAscii', ['TacoCÆt'], 'tacocÆt'],
  'upperAscii leaves other letters alone': ['upperAscii', ['tacoCαt'], 'TACOCαT'],

  'replace replaces all occurrences': ['replace', ['{0} days {0}', '{0}', '$&'], '$& days $&'],
  'replace stops at the limit': ['replace', ['aaa', 'a', 'b', 2n], 'bba'],
  'replace with limit zero changes nothing': ['replace', ['aaa', 'a', 'b', 0n], 'aaa'],
  'replace with a negative limit replaces all occurrences': ['replace', ['aaa', 'a', 'b', -1n], 'bbb'],
  'replace of an empty text inserts around each code point': ['replace', ['a😀', '', '-'], '-a-😀-'],
  'replace of an empty text stops at the limit': ['replace', ['abc', '', '-', 2n], '-a-bc'],

  'split splits at each separator': ['split', ['o©o©o', '©'], ['o', 'o', 'o']],
  'split of an empty text is one empty text': ['split', ['', ','], ['']],
  'split by an empty text returns code points': ['split', ['a😀b', ''], ['a', '😀', 'b']],
  'split of an empty text by an empty text is empty': ['split', ['', ''], []],
  'split with a limit keeps the rest together': ['split', ['a,b,c', ',', 2n], ['a', 'b,c']],
  'split by an empty text with a limit keeps the rest together': ['split', ['abc', '', 2n], ['a', 'bc']],
  'split with limit zero is empty': ['split', ['a,b', ',', 0n], []],
  'split with limit one returns the text': ['split', ['a,b', ',', 1n], ['a,b']],
  'split with a negative limit has no limit': ['split', ['a,b', ',', -1n], ['a', 'b']],

  'join concatenates texts': ['join', [list('x', 'y')], 'xy'],
  'join inserts a separator': ['join', [list('x', 'y', 'z'), '-'], 'x-y-z'],
  'join of an empty list is empty': ['join', [list(), '-'], ''],
  'join rejects elements that are not text': ['join', [list('x', 1n)], fault('join: invalid input: 1')],

  'substring from an index': ['substring', ['a😀cat', 2n], 'cat'],
  'substring between two indexes': ['substring', ['ta©o©αT', 2n, 6n], '©o©α'],
  'substring of length zero': ['substring', ['tacocat', 7n, 7n], ''],
  'substring beyond the end is a fault': ['substring', ['tacocat', 40n], fault('index out of range: 40')],
  'substring to beyond the end is a fault': ['substring', ['taco', 1n, 50n], fault('index out of range: 50')],
  'substring backwards is a fault': [
    'substring',
    ['tacocat', 4n, 3n],
    fault('invalid substring range. start: 4, end: 3'),
  ],

  'trim removes Unicode white space': ['trim', ['\u0085\u00a0\u1680 \t\vtext\u2028\u202f\u3000'], 'text'],
  'trim keeps characters that only look like white space': [
    'trim',
    ['\u180etext\u200b\ufeff'],
    '\u180etext\u200b\ufeff',
  ],
  'trim of white space is empty': ['trim', [' \n '], ''],

  'quote escapes the characters that CEL escapes': [
    'strings.quote',
    ['a\x07\b\f\n\r\t\v\\"é😀'],
    '"a\\a\\b\\f\\n\\r\\t\\v\\\\\\"é😀"',
  ],
  'quote replaces broken surrogates': ['strings.quote', ['a\ud800'], '"a\ufffd"'],
});

testCalls(stringsReverseLibrary, {
  'reverse reverses the characters': ['reverse', ['gums'], 'smug'],
  'reverse keeps code points whole': ['reverse', ['a😀b'], 'b😀a'],
});

const BIG = 'a'.repeat(1_000_000);
const hostile: Record<string, [string, Parameters<typeof call>[2]]> = {
  'replace that grows': ['replace', [BIG, 'a', 'b'.repeat(10_000)]],
  'replace of an empty text that grows': ['replace', [BIG, '', 'b'.repeat(10_000)]],
  'split into letters': ['split', [BIG, '']],
  'join with a long separator': ['join', [list(...Array.from({ length: 1000 }, () => '')), BIG]],
  'a search for a long text': ['indexOf', [BIG, `b${'a'.repeat(500_000)}`]],
  'a search from the end for a long text': ['lastIndexOf', [BIG, `${'a'.repeat(5000)}b`]],
};
for (const [what, [name, args]] of Object.entries(hostile)) {
  test(`a budget limits ${what}`, () => {
    assert.throws(() => call(stringsLibrary, name, args, new Budget(1_000_000)), CostLimitError);
  });
}

test('ordinary calls cost little', () => {
  assert.ok(costOf(stringsLibrary, 'lastIndexOf', ['registry.example.com/app:v1', ':']) < 20);
  assert.ok(costOf(stringsLibrary, 'replace', ['a-b-c', '-', '_']) < 20);
});
