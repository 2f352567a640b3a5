import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseMachineTypes } from '#cli/tour/machine-types.ts';
import type { Node } from '#kube/core-kinds.ts';

interface MadeUp {
  readonly types?: readonly string[];
  readonly hypervisor?: string;
  readonly cordoned?: boolean;
}

const Q35 = ['pc-q35-6.0', 'pc-q35-6.2', 'pc-q35-7.0', 'pc-q35-7.1', 'pc-q35-7.2', 'pc-q35-10.0'];

function node({ types = Q35, hypervisor = 'qemu', cordoned = false }: MadeUp = {}): Node {
  const labels = Object.fromEntries([
    ['kubevirt.io/schedulable', 'true'],
    ['selfsame.io/hypervisor', hypervisor],
    ...types.map((type) => [`machine-type.node.kubevirt.io/${type}`, 'true']),
  ]) as Record<string, string>;
  const spec = cordoned ? { unschedulable: true } : {};
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels }, spec };
}

const cases: Record<string, { nodes: readonly Node[]; want: object | RegExp }> = {
  'chooses the newest and one three releases older': {
    nodes: [node(), node()],
    want: { first: 'pc-q35-7.0', other: 'pc-q35-10.0' },
  },
  'chooses only types of all nodes': {
    nodes: [node(), node({ types: ['q35', 'pc-i440fx-7.2', 'pc-q35-6.2', 'pc-q35-7.2'] })],
    want: { first: 'pc-q35-6.2', other: 'pc-q35-7.2' },
  },
  'requires two nodes': { nodes: [node()], want: /1 nodes of this plane accept VMs; expected two/ },
  'ignores a cordoned node': { nodes: [node(), node({ cordoned: true })], want: /expected two/ },
  'refuses simulated guests': { nodes: [node({ hypervisor: 'fake' }), node()], want: /simulated/ },
  'refuses nodes without common types': {
    nodes: [node(), node({ types: ['pc-q35-9.0'] })],
    want: /fewer than two pc-q35-\* machine types/,
  },
};
for (const [title, { nodes, want }] of Object.entries(cases)) {
  test(`machine types for the tour: ${title}`, () => {
    const found = chooseMachineTypes(nodes);
    if (want instanceof RegExp) assert.match('problem' in found ? found.problem : '', want);
    else assert.deepEqual(found, want);
  });
}
