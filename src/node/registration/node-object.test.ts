import { MACHINE_TYPES_ANNOTATION } from '#api/machine-types/names.ts';
import { TUNNEL_ADDRESS_ANNOTATION } from '#api/names.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aDescription } from '#node/registration/testing/sample-description.ts';
import {
  annotationChanges,
  labelChanges,
  nodeAnnotations,
  nodeLabels,
  buildNodeStatus,
  withoutHeartbeat,
} from '#node/registration/node-object.ts';

const NOW = 1_900_000_000_000;

test('the labels contain every supported machine type and its alias', () => {
  assert.deepEqual(nodeLabels(aDescription()), {
    'kubernetes.io/hostname': 'n1',
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    'kubevirt.io/schedulable': 'true',
    'selfsame.io/hypervisor': 'qemu',
    'machine-type.node.kubevirt.io/pc-q35-7.2': 'true',
    'machine-type.node.kubevirt.io/q35': 'true',
    'machine-type.node.kubevirt.io/pc': 'true',
    'machine-type.node.kubevirt.io/pc-i440fx-7.2': 'true',
    'machine-type.node.kubevirt.io/pc-q35-6.2': 'true',
  });
});

test('an annotation contains the aliases and deprecations of machine types', () => {
  const description = aDescription();
  const [first, ...others] = description.capabilities.machines;
  const machines = [...others, { ...first!, deprecated: true }];
  const annotations = nodeAnnotations({ ...description, capabilities: { ...description.capabilities, machines } });
  assert.deepEqual(JSON.parse(annotations[MACHINE_TYPES_ANNOTATION]!), [
    { name: 'pc-i440fx-7.2', alias: 'pc', deprecated: false },
    { name: 'pc-q35-6.2', deprecated: false },
    { name: 'pc-q35-7.2', alias: 'q35', deprecated: true },
  ]);
  assert.equal(annotationChanges({ other: 'x', ...annotations }, annotations), undefined);
  const outdated = { other: 'x', [MACHINE_TYPES_ANNOTATION]: '[]' };
  assert.deepEqual(annotationChanges(outdated, annotations), annotations);
});

test('an annotation contains the address of the tunnel, and is removed when there is none', () => {
  const without = nodeAnnotations(aDescription());
  const annotations = nodeAnnotations({ ...aDescription(), tunnelAddress: '192.0.2.7' });
  assert.equal(annotations[TUNNEL_ADDRESS_ANNOTATION], '192.0.2.7');
  assert.equal(without[TUNNEL_ADDRESS_ANNOTATION], undefined);
  assert.deepEqual(annotationChanges(without, annotations), { [TUNNEL_ADDRESS_ANNOTATION]: '192.0.2.7' });
  assert.deepEqual(annotationChanges(annotations, without), { [TUNNEL_ADDRESS_ANNOTATION]: null });
});

test('foreign labels are kept, and labels of obsolete machine types are removed', () => {
  const wanted = nodeLabels(aDescription());
  assert.equal(labelChanges({ ...wanted, rack: '7' }, wanted), undefined);
  const old = {
    rack: '7',
    ...wanted,
    'machine-type.node.kubevirt.io/pc-q35-2.8': 'true',
    'kubernetes.io/hostname': 'x',
  };
  assert.deepEqual(labelChanges(old, wanted), {
    'kubernetes.io/hostname': 'n1',
    'machine-type.node.kubevirt.io/pc-q35-2.8': null,
  });
});

test('a real node has the capacity of its machine, a simulated one a large capacity', () => {
  assert.deepEqual(buildNodeStatus({}, aDescription(), NOW).capacity, { cpu: '2', memory: '8Gi', pods: '5k' });
  assert.equal(buildNodeStatus({}, aDescription('simulated'), NOW).allocatable?.['memory'], '1Pi');
});

test('only the heartbeat depends on the time', () => {
  const first = buildNodeStatus({}, aDescription(), NOW);
  const later = buildNodeStatus(first, aDescription(), NOW + 60_000);
  assert.notDeepEqual(later, first);
  assert.deepEqual(withoutHeartbeat(later), withoutHeartbeat(first));
});

test('a node that was marked as lost becomes ready, and foreign conditions are kept', () => {
  const lost = [
    { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' },
    { type: 'Other', status: 'True' },
  ] as const;
  const { conditions } = buildNodeStatus({ conditions: [...lost] }, aDescription(), NOW);
  assert.deepEqual(
    conditions?.map(({ type, status }) => [type, status]),
    [
      ['Ready', 'True'],
      ['Other', 'True'],
      ['MemoryPressure', 'False'],
      ['DiskPressure', 'False'],
      ['PIDPressure', 'False'],
    ],
  );
});

test('every condition has a message', () => {
  const conditions = buildNodeStatus({}, aDescription(), NOW).conditions ?? [];
  assert.equal(conditions.length, 4);
  for (const { type, message } of conditions) assert.ok(message, type);
});

test('the hostname is an address only if there is one', () => {
  const addresses = (hostname?: string) => buildNodeStatus({}, { ...aDescription(), hostname }, NOW).addresses;
  assert.deepEqual(addresses(), [{ type: 'InternalIP', address: '127.0.0.1' }]);
  assert.deepEqual(addresses('n1.example'), [
    { type: 'InternalIP', address: '127.0.0.1' },
    { type: 'Hostname', address: 'n1.example' },
  ]);
});
