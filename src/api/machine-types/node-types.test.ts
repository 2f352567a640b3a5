import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MACHINE_TYPES_ANNOTATION } from '#api/machine-types/names.ts';
import { canonicalTypes, machineTypesOf } from '#api/machine-types/node-types.ts';

const aNode = (text?: string) => ({
  metadata: { name: 'n', ...(text !== undefined && { annotations: { [MACHINE_TYPES_ANNOTATION]: text } }) },
});
const offers = (...types: { name: string; alias?: string }[]) => aNode(JSON.stringify(types));
const NEW = { name: 'pc-q35-9.2', alias: 'q35' };

test('invalid annotations are ignored', () => {
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
  'resolves aliases and names': {
    nodes: [offers(NEW, { name: 'pc-q35-8.6' }), offers(NEW), aNode()],
    want: { q35: 'pc-q35-9.2', 'pc-q35-9.2': 'pc-q35-9.2', 'pc-q35-8.6': 'pc-q35-8.6', pc: undefined },
  },
  'does not resolve an alias on which nodes disagree': {
    nodes: [offers(NEW), offers({ name: 'pc-q35-8.6', alias: 'q35' })],
    want: { q35: undefined, 'pc-q35-8.6': 'pc-q35-8.6' },
  },
  'resolves nothing if no node reports types': { nodes: [aNode()], want: { q35: undefined, constructor: undefined } },
};
for (const [name, { nodes, want }] of Object.entries(cases)) {
  test(name, () => {
    const canonical = canonicalTypes(nodes);
    for (const [name, type] of Object.entries(want)) assert.equal(canonical(name), type, name);
  });
}
