import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVm, aVmi } from '#api/machine-types/testing/sample-transition.ts';
import { offeredTypes, supportedText, supportedTypes, usedType } from '#cli/machine-types/supported-types.ts';

type ReportedType = { name: string; alias?: string; deprecated?: boolean };

function aNode(name: string, labelled: readonly string[], reported?: readonly ReportedType[] | string) {
  const labels = Object.fromEntries(labelled.map((type) => [`machine-type.node.kubevirt.io/${type}`, 'true']));
  const text = typeof reported === 'string' ? reported : JSON.stringify(reported);
  const annotations: Record<string, string> = reported === undefined ? {} : { 'selfsame.io/machine-types': text };
  return { metadata: { name, labels, annotations } };
}

const NEW = [
  { name: 'pc-q35-10.0', alias: 'q35' },
  { name: 'pc-q35-6.2', deprecated: true },
];

test('lists types with alias and deprecation in the order of their versions', () => {
  assert.deepEqual(offeredTypes([aNode('a', ['pc-q35-10.0', 'q35', 'pc-q35-6.2'], NEW), aNode('b', ['pc-q35-6.2'])]), [
    { name: 'pc-q35-6.2', aliases: [], deprecated: true, nodes: ['a', 'b'] },
    { name: 'pc-q35-10.0', aliases: ['q35'], deprecated: false, nodes: ['a'] },
  ]);
});

const labelsAlone: Record<string, ReportedType[] | string | undefined> = {
  'has no annotation': undefined,
  'has an annotation that is not JSON': '{',
  'has an annotation that is not a list': '{}',
  'has an annotation with items that are not types': '[1, null, {"alias": "q35"}]',
};
for (const [title, reported] of Object.entries(labelsAlone)) {
  test(`only the labels of a node count if it ${title}`, () => {
    assert.deepEqual(offeredTypes([aNode('a', ['q35'], reported)]), [
      { name: 'q35', aliases: [], deprecated: undefined, nodes: ['a'] },
    ]);
  });
}

test('does not offer a type without a label', () => {
  assert.deepEqual(offeredTypes([aNode('a', [], NEW)]), []);
});

const used: Record<string, { got: ReturnType<typeof usedType>; want: [type: string, running: boolean] }> = {
  'the type of the running guest': {
    got: usedType(aVm({ type: 'q35' }), aVmi({ type: 'q35', runs: 'pc-q35-6.2' }), 'q35'),
    want: ['pc-q35-6.2', true],
  },
  'the type in the spec if the guest has ended': {
    got: usedType(aVm({ type: 'q35' }), aVmi({ type: 'q35', runs: 'pc-q35-6.2', phase: 'Succeeded' }), 'pc'),
    want: ['q35', false],
  },
  'the default type if the spec has none': {
    got: usedType(aVm({ type: null }), undefined, 'q35'),
    want: ['q35', false],
  },
};
for (const [title, { got, want }] of Object.entries(used)) {
  test(`a VM has ${title}`, () => assert.deepEqual([got.type, got.running], want));
}

test('counts VMs by type and alias, and lists VMs whose type no node offers', () => {
  const offered = offeredTypes([aNode('a', ['pc-q35-10.0', 'q35', 'pc-q35-6.2'], NEW)]);
  const vm = (name: string, type: string) => ({ namespace: 'ns', name, type, running: false });
  const all = [vm('b', 'q35'), vm('a', 'pc-q35-10.0'), vm('d', 'pc-q35-rhel8.2.0'), vm('c', 'pc-q35-2.0')];
  assert.equal(
    supportedText(supportedTypes(offered, all, (type) => type !== 'pc-q35-6.2')),
    `MACHINE TYPE   ALIAS   DEPRECATED   ALLOWED   NODES   VMS
pc-q35-6.2     -       yes          no        1       0
pc-q35-10.0    q35     no           yes       1       2

2 VMs have machine types that no node offers:
NAMESPACE   NAME   MACHINE TYPE       RUNNING
ns          c      pc-q35-2.0         no
ns          d      pc-q35-rhel8.2.0   no`,
  );
});

test('prints a message if there is nothing to list', () => {
  const text = supportedText(supportedTypes([], [], () => true));
  assert.equal(text, 'No node offers any machine type.\n\nEvery VM has a machine type that a node offers.');
});
