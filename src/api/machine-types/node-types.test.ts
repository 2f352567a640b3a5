import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MACHINE_TYPES_ANNOTATION } from '#api/machine-types/names.ts';
import { canonicalTypes, machineTypesOf } from '#api/machine-types/node-types.ts';

const aNode = (text?: string) => ({
  metadata: { name: 'n', ...(text !== undefined && { annotations: { [MACHINE_TYPES_ANNOTATION]: text } }) },
});
const offers = (...types: { name: string; alias?: string }[]) => aNode(JSON.stringify(types));
const NEW = { name: 'pc-q35-9.2', alias: 'q35' };

test('what cannot be read says nothing', () => {
  for (const text of [undefined, '', '{', 'null', '{"name":"x"}', '[3,{"name":4}]']) {
    assert.deepEqual(machineTypesOf(aNode(text)), [], text ?? 'absent');
  }
  const odd = aNode('[{"name":"a","alias":"","deprecated":"yes"},{"name":"b","alias":7,"deprecated":true}]');
  assert.deepEqual(machineTypesOf(odd), [
    { name: 'a', deprecated: false },
    { name: 'b', deprecated: true },
  ]);
});

const cases: Record<string, { nodes: ReturnType<typeof aNode>[]; want: Record<string, string | undefined> }> = {
  'an alias, and what stands for itself': {
    nodes: [offers(NEW, { name: 'pc-q35-8.6' }), offers(NEW), aNode()],
    want: { q35: 'pc-q35-9.2', 'pc-q35-9.2': 'pc-q35-9.2', 'pc-q35-8.6': 'pc-q35-8.6', pc: undefined },
  },
  'nodes that differ leave it open': {
    nodes: [offers(NEW), offers({ name: 'pc-q35-8.6', alias: 'q35' })],
    want: { q35: undefined, 'pc-q35-8.6': 'pc-q35-8.6' },
  },
  'no node tells': { nodes: [aNode()], want: { q35: undefined, constructor: undefined } },
};
for (const [name, { nodes, want }] of Object.entries(cases)) {
  test(name, () => {
    const canonical = canonicalTypes(nodes);
    for (const [word, meaning] of Object.entries(want)) assert.equal(canonical(word), meaning, word);
  });
}
