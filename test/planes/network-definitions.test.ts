/** Secondary networks: which definitions VMs may use, what happens without one, and who may write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeMissingDefinition } from '#api/network/missing-definition.ts';
import { aMigration, migrationPhase } from '#test/support/migrating-vm.ts';
import { aNetworkDefinition, GUEST_NETWORK } from '#test/support/secondary-networks.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const RUNNING = { runStrategy: 'Always' };
const MISSING = 'NetworkDefinitionMissing';
const RETRY_MS = 30_000;
const definitionsIn = (namespace: string) =>
  `/apis/k8s.cni.cncf.io/v1/namespaces/${namespace}/network-attachment-definitions`;
const vmsIn = (namespace: string) => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;

/** A VM whose interface `lan` is on the network, beside the pod network. */
function aVmOn(name: string, ...networkNames: string[]): Loose {
  const secondary = networkNames.map((networkName, i) => ({ name: `lan${i}`, multus: { networkName } }));
  const interfaces = [{ name: 'default', masquerade: {} }, ...secondary.map((one) => ({ name: one.name, bridge: {} }))];
  const networks = [{ name: 'default', pod: {} }, ...secondary];
  return aVm(name, RUNNING, { domain: { devices: { interfaces } }, networks });
}

async function conditionOf(plane: VmPlane, vm: string): Promise<Loose> {
  const { status } = await plane.get('VirtualMachine', vm);
  return status.conditions.find(({ type }: Loose) => type === MISSING);
}

/** Returns the CNI configuration of an interface of the guest. */
function configOf(plane: VmPlane, vm: string, name: string): Loose {
  const nic = plane.guest(vm).definition.devices.find(({ id }) => id === `nic-${name}`) as Loose;
  return nic && JSON.parse(nic.backend.attachment.network.config);
}

async function waitingMessage(plane: VmPlane): Promise<string> {
  const [pod] = await plane.list('Pod');
  return pod.status.containerStatuses[0].state.waiting?.message;
}

test('a VM on a network without a definition', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(GUEST_NETWORK);
  const message = describeMissingDefinition('br0', 'default');

  await t.test('waits, and shows the definition to write', async () => {
    await plane.apply(aVmOn('db', 'br0'));
    assert.equal(await plane.summaryOf('db'), 'Starting, VMI Scheduled, no guest, 0');
    assert.equal((await conditionOf(plane, 'db')).message, message);
    assert.equal(await waitingMessage(plane), message);
    const events = await plane.eventsOf('db');
    assert.ok(events.includes(`${MISSING} ${message}`), events.join('\n'));
  });

  await t.test('starts by itself when the definition exists', async () => {
    await plane.apply(aNetworkDefinition('br0'));
    assert.equal(await conditionOf(plane, 'db'), undefined);
    await plane.advance(RETRY_MS);
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 1');
    assert.deepEqual(configOf(plane, 'db', 'lan0').plugins, [{ type: 'bridge', bridge: 'br0' }]);
  });

  await t.test('keeps running when it is deleted, and cannot be migrated until it is back', async () => {
    await plane.delete('NetworkAttachmentDefinition', 'br0');
    assert.equal((await conditionOf(plane, 'db')).message, message);
    await plane.apply(aMigration('without', 'db'));
    await plane.advance(120_000);
    assert.match(await migrationPhase(plane, 'without'), /^Failed: .*There is no NetworkAttachmentDefinition/s);
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 1');
    await plane.apply(aNetworkDefinition('br0'));
    await plane.apply(aMigration('with', 'db'));
    assert.equal(await migrationPhase(plane, 'with'), 'Succeeded');
    assert.deepEqual(configOf(plane, 'db', 'lan0').plugins, [{ type: 'bridge', bridge: 'br0' }]);
  });

  await t.test('an interface is plugged in as soon as its definition exists', async () => {
    const { spec } = aVmOn('db', 'br0', 'br1');
    await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'db' }, spec });
    const hotplug = async () => (await plane.get('VirtualMachineInstance', 'db')).status.hotplug;
    assert.equal(configOf(plane, 'db', 'lan1'), undefined);
    assert.match((await hotplug())[0].message, /^There is no NetworkAttachmentDefinition "default\/br1"/);
    await plane.apply(aNetworkDefinition('br1'));
    await plane.advance(RETRY_MS);
    assert.equal((await hotplug())[0].phase, 'Ready');
    assert.deepEqual(configOf(plane, 'db', 'lan1').plugins, [{ type: 'bridge', bridge: 'br1' }]);
    await plane.delete('VirtualMachine', 'db');
  });

  await t.test('a definition that cannot be used is named', async () => {
    await plane.apply(aNetworkDefinition('bad', { type: '../../bin/sh' }));
    await plane.apply(aVmOn('bad', 'bad'));
    assert.match(
      await waitingMessage(plane),
      /^NetworkAttachmentDefinition "default\/bad": spec\.config: type is "\.\.\/\.\.\/bin\/sh"; expected the name of a plugin/,
    );
    await plane.delete('VirtualMachine', 'bad');
  });
});

test('a guest that an earlier version connected with a bridge of the host', async (t) => {
  const plane = await startVmPlane(t);
  for (const object of [GUEST_NETWORK, aNetworkDefinition('br0')]) await plane.apply(object);
  await plane.apply(aVmOn('old', 'br0'));
  // As earlier versions started it: without a network namespace.
  const { record, definition } = plane.guest('old');
  const { network: _, devices, ...rest } = definition;
  const backends: Loose = { 'nic-default': { type: 'user' }, 'nic-lan0': { type: 'bridge', bridge: 'br0' } };
  const older = devices.map((device) =>
    device.type === 'interface' ? { ...device, backend: backends[device.id] } : device,
  );
  record.definition = JSON.stringify({ ...rest, devices: older });
  await plane.delete('NetworkAttachmentDefinition', 'br0');
  const backendOf = (id: string) => {
    const nic = plane.guest('old').definition.devices.find((device) => device.id === id) as Loose;
    return nic?.backend;
  };

  await t.test('keeps running and migrating with it', async () => {
    assert.ok(await conditionOf(plane, 'old'));
    await plane.apply(aMigration('move', 'old'));
    assert.equal(await migrationPhase(plane, 'move'), 'Succeeded');
    assert.deepEqual(backendOf('nic-lan0'), { type: 'bridge', bridge: 'br0' });
    assert.equal(plane.guest('old').definition.network, undefined);
  });

  await t.test('gets no further network before its next start', async () => {
    await plane.apply(aNetworkDefinition('br1'));
    const { spec } = aVmOn('old', 'br0', 'br1');
    await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'old' }, spec });
    assert.equal(backendOf('nic-lan1'), undefined);
    const [{ message }] = (await plane.get('VirtualMachineInstance', 'old')).status.hotplug;
    assert.match(message, /without a network namespace, which this network needs; restart the VM/);
  });

  await t.test('uses definitions from its next start on', async () => {
    await plane.runVerb('restart', 'old');
    assert.equal(plane.guests('old').length, 0);
    await plane.apply(aNetworkDefinition('br0'));
    await plane.advance(RETRY_MS);
    assert.equal(backendOf('nic-lan0').type, 'pod');
    assert.equal(backendOf('nic-lan1').type, 'pod');
  });
});

test('the namespaces of definitions', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(GUEST_NETWORK);
  const { api } = plane.server;
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
  });
  await plane.apply(aNetworkDefinition('lan', { type: 'bridge', bridge: 'shared' }));
  const guestIn = (vm: string) => plane.nodes[0]!.livingGuests(`shop/${vm}`)[0]!.definition;
  const bridgeOf = (vm: string) => {
    const nic = guestIn(vm).devices.find(({ id }) => id === 'nic-lan0') as Loose;
    return JSON.parse(nic.backend.attachment.network.config).plugins[0].bridge;
  };

  await t.test('a VM uses that of the namespace "default"', async () => {
    await api.ok('POST', vmsIn('shop'), { body: aVmOn('first', 'lan') });
    await plane.settle();
    assert.equal(bridgeOf('first'), 'shared');
  });

  await t.test('that of its own namespace comes first', async () => {
    const body = aNetworkDefinition('lan', { type: 'bridge', bridge: 'own' });
    await api.ok('POST', definitionsIn('shop'), { body });
    await api.ok('POST', vmsIn('shop'), { body: aVmOn('second', 'lan') });
    await api.ok('POST', vmsIn('shop'), { body: aVmOn('third', 'default/lan') });
    await plane.settle();
    assert.equal(bridgeOf('second'), 'own');
    assert.equal(bridgeOf('third'), 'shared');
  });

  await t.test('others are refused', async () => {
    const { status, body } = await plane.call('POST', vmsIn('default'), { body: aVmOn('thief', 'shop/lan') });
    assert.equal(status, 422);
    assert.match(
      body.message,
      /multus\.networkName: Invalid value: "shop\/lan": must be in the namespace of the VM or in "default": expected a name in "default"$/,
    );
  });
});

test('who may do what with definitions', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  const { api } = plane.server;
  await plane.apply(aNetworkDefinition('lan'));
  for (const role of ['admin', 'edit', 'view']) {
    await api.ok('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
      body: {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: role },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: role }],
      },
    });
  }
  await plane.settle();
  const users: Record<string, { user: Loose; want: Record<string, number> }> = {
    'namespace administrators read them': {
      user: { name: 'admin', groups: ['system:authenticated'] },
      want: { get: 200, list: 200, create: 403, delete: 403 },
    },
    'editors read them': {
      user: { name: 'edit', groups: ['system:authenticated'] },
      want: { get: 200, list: 200, create: 403, delete: 403 },
    },
    'viewers read them': {
      user: { name: 'view', groups: ['system:authenticated'] },
      want: { get: 200, list: 200, create: 403, delete: 403 },
    },
    'others do not see them': {
      user: { name: 'nobody', groups: ['system:authenticated'] },
      want: { get: 403, list: 403, create: 403, delete: 403 },
    },
    'nodes get them by name': {
      user: { name: 'system:node:node-1', groups: ['system:nodes', 'system:authenticated'] },
      want: { get: 200, list: 403, create: 403, delete: 403 },
    },
    'cluster administrators write them': {
      user: { name: 'root', groups: ['system:masters'] },
      want: { get: 200, list: 200, create: 201, delete: 200 },
    },
  };
  for (const [name, { user, want }] of Object.entries(users)) {
    await t.test(name, async () => {
      const url = definitionsIn('default');
      const calls: Record<string, [string, string, Loose?]> = {
        get: ['GET', `${url}/lan`],
        list: ['GET', url],
        create: ['POST', url, aNetworkDefinition('other')],
        delete: ['DELETE', `${url}/lan`],
      };
      const got: Record<string, number> = {};
      for (const [verb, [method, path, body]] of Object.entries(calls)) {
        got[verb] = (await plane.call(method, path, { user, ...(body && { body }) })).status;
      }
      assert.deepEqual(got, want);
    });
  }
});
