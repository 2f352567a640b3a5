import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { goSyntax, goText } from '#kube/go/go-text.ts';

const cases: Record<string, { value: unknown; text: string; syntax: string }> = {
  'a map with sorted keys': {
    value: { b: 1, a: 'x' },
    text: 'map[a:x b:1]',
    syntax: 'map[string]interface {}{"a":"x", "b":1}',
  },
  'a list': {
    value: ['x', { a: true }],
    text: '[x map[a:true]]',
    syntax: '[]interface {}{"x", map[string]interface {}{"a":true}}',
  },
  'empty maps and lists': {
    value: { a: {}, b: [] },
    text: 'map[a:map[] b:[]]',
    syntax: 'map[string]interface {}{"a":map[string]interface {}{}, "b":[]interface {}{}}',
  },
  null: { value: { a: null }, text: 'map[a:<nil>]', syntax: 'map[string]interface {}{"a":interface {}(nil)}' },
};

describe('goText and goSyntax print', () => {
  for (const [name, { value, text, syntax }] of Object.entries(cases)) {
    it(name, () => {
      assert.equal(goText(value), text);
      assert.equal(goSyntax(value), syntax);
    });
  }

  it('at most as much as fits into a message', () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key${i}`, { list: [i] }]));
    assert.ok(goText(many).length < 3000);
    assert.ok(goSyntax(many).length < 3000);
  });
});
