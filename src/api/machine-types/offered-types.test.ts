import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeUnofferedType } from '#api/machine-types/offered-types.ts';
import { MACHINE_TYPE_LABEL_PREFIX } from '#api/names.ts';

const aNode = (...types: string[]) => ({
  metadata: {
    name: 'n',
    labels: {
      'kubernetes.io/os': 'linux',
      ...Object.fromEntries(types.map((type) => [MACHINE_TYPE_LABEL_PREFIX + type, 'true'])),
    },
  },
});
const LIST = '("virtctl update machine-types supported" lists them)';
const versions = Array.from({ length: 10 }, (_, minor) => `pc-q35-9.${minor}`);

const cases: Record<string, { type?: string; nodes: ReturnType<typeof aNode>[]; want?: string }> = {
  'a node offers it': { type: 'pc-q35-7.2', nodes: [aNode('q35'), aNode('pc-q35-7.2')] },
  'there are no nodes': { nodes: [] },
  'no node has reported its types': { nodes: [aNode()] },
  'another version': {
    nodes: [aNode('pc', 'q35', 'pc-q35-7.2', 'pc-q35-10.0', 'pc-i440fx-7.2')],
    want: `no node offers the machine type "pc-q35-99.0"; the nodes offer q35, pc-q35-10.0, pc-q35-7.2, pc, pc-i440fx-7.2 ${LIST}`,
  },
  'the nodes offer many': {
    nodes: [aNode('q35', ...versions), aNode('q35', 'pc-q35-10.0')],
    want: `no node offers the machine type "pc-q35-99.0"; the nodes offer q35, pc-q35-10.0, pc-q35-9.9, pc-q35-9.8, pc-q35-9.7, pc-q35-9.6 and 6 others ${LIST}`,
  },
  'an alias': {
    type: 'pc',
    nodes: [aNode('q35')],
    want: `no node offers the machine type "pc"; the nodes offer q35 ${LIST}`,
  },
};

for (const [name, { type = 'pc-q35-99.0', nodes, want }] of Object.entries(cases)) {
  test(`a machine type that no node offers: ${name}`, () => {
    assert.equal(describeUnofferedType(type, nodes), want);
  });
}
