/** The address of a guest on the default network belongs to its VM: allocation, refusals and release. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import { deleteStoredRecord } from '#test/support/stored-records.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const SUBNETS = ['10.244.0.0/16', 'fd00:10:244::/64'];
const REQUEST = 'network.kubevirt.io/addresses';
const RUNNING = { runStrategy: 'Always' };
const HALTED = { runStrategy: 'Halted' };
const CONTROLLER = 'system:serviceaccount:selfsame-system:network-address-controller';

const guestNetwork = (subnets: readonly string[] = SUBNETS): Loose => ({
  apiVersion: 'network.selfsame.io/v1',
  kind: 'GuestNetwork',
  metadata: { name: 'default' },
  spec: { subnets },
});

const askFor = (vm: Loose, addresses: unknown): Loose => ({
  ...vm,
  metadata: { ...vm.metadata, annotations: { [REQUEST]: addresses === null ? null : JSON.stringify(addresses) } },
});

/** Returns the reason why the instance has no guest. */
async function refusalOf(plane: VmPlane, vm: string): Promise<string> {
  const { status } = await plane.get('VirtualMachineInstance', vm);
  const { reason, message } = status.conditions.find(({ type }: Loose) => type === 'Synchronized') ?? {};
  return `${reason}: ${message}`;
}

async function conditionOf(plane: VmPlane, vm: string, type: string): Promise<string | undefined> {
  const { status } = await plane.get('VirtualMachine', vm);
  return status.conditions.find((condition: Loose) => condition.type === type)?.message;
}

async function recordedAddresses(plane: VmPlane, vm: string): Promise<string[]> {
  return (await plane.get('VirtualMachineIdentity', vm)).spec.interfaces[0].addresses;
}

/** Deletes an address, which no user can. */
async function loseAddress(plane: VmPlane, name: string): Promise<void> {
  const user = { name: CONTROLLER, groups: ['system:masters', 'system:authenticated'] };
  await plane.server.api.ok('DELETE', `/apis/network.selfsame.io/v1/networkaddresses/${name}`, { user });
}

/** Returns the addresses of the VM's launcher pods that have not ended, one text for each pod. */
async function podAddresses(plane: VmPlane, vm: string): Promise<string[]> {
  return (await plane.list('Pod'))
    .filter(({ metadata, status }) => metadata.annotations['kubevirt.io/domain'] === vm && status.phase === 'Running')
    .map(({ metadata }) => metadata.annotations['network.selfsame.io/addresses']);
}

/** Returns the addresses of the VM, sorted. */
async function addressesOf(plane: VmPlane, vm: string): Promise<string[]> {
  const all = await plane.list('NetworkAddress');
  return all.filter(({ spec }) => spec.owner.name === vm).map(({ spec }) => spec.address);
}

test('the addresses of VMs on the default network', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('without a GuestNetwork, launcher pods name no addresses', async () => {
    await plane.apply(aVm('early', RUNNING));
    assert.deepEqual(await podAddresses(plane, 'early'), [undefined]);
    await plane.apply(guestNetwork());
    assert.deepEqual(await addressesOf(plane, 'early'), [], 'a running guest keeps its network until its next start');
    await plane.runVerb('restart', 'early');
    assert.equal((await addressesOf(plane, 'early')).length, 2);
    await plane.delete('VirtualMachine', 'early');
  });

  await t.test('a VM keeps its addresses through restart, stop and migration', async () => {
    await plane.apply(aVm('db', RUNNING));
    const first = await addressesOf(plane, 'db');
    assert.equal(first.length, 2);
    const [v4 = '', v6 = ''] = first;
    const annotation = JSON.stringify({ default: [`${v4}/16`, `${v6}/64`] });
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    await plane.runVerb('restart', 'db');
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    assert.equal(plane.startsOf('db').length, 2);
    await plane.runVerb('stop', 'db');
    await plane.advance(60 * 60_000);
    assert.deepEqual(await addressesOf(plane, 'db'), first);
    await plane.runVerb('start', 'db');
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    await plane.runVerb('migrate', 'db');
    await plane.advance(30_000);
    assert.deepEqual(await podAddresses(plane, 'db'), [annotation]);
    assert.match((await plane.list('VirtualMachineInstanceMigration'))[0].status.phase, /Succeeded/);
  });

  await t.test('the deletion of the VM frees them', async () => {
    await plane.delete('VirtualMachine', 'db');
    assert.deepEqual(await plane.list('NetworkAddress'), []);
  });

  await t.test('a requested address, and another one at the next start', async () => {
    await plane.apply(askFor(aVm('web', RUNNING), { default: ['10.244.0.99'] }));
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.99', 'fd00:10:244::63']);
    await plane.apply(askFor(aVm('web', RUNNING), { default: ['10.244.0.98', 'fd00:10:244::1234'] }));
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.99', 'fd00:10:244::63'], 'it runs');
    await plane.runVerb('restart', 'web');
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234']);
    assert.deepEqual(await podAddresses(plane, 'web'), ['{"default":["10.244.0.98/16","fd00:10:244::1234/64"]}']);
    assert.deepEqual(await recordedAddresses(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234']);
    const { history } = (await plane.get('VirtualMachineIdentity', 'web')).status;
    const changes = history.flatMap((entry: Loose) =>
      entry.changes
        .filter(({ field }: Loose) => field === 'interfaces.default.addresses')
        .map(({ to }: Loose) => `${to} by ${entry.cause.replace(/[0-9a-f-]{36}/, 'UID')}`),
    );
    assert.deepEqual(changes, [
      '10.244.0.99,fd00:10:244::63 by the start of instance UID',
      '10.244.0.98,fd00:10:244::1234 by edit of the VM',
    ]);
    await plane.apply(askFor(aVm('web', RUNNING), null));
    await plane.runVerb('restart', 'web');
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234'], 'the record keeps them');
  });

  await t.test('a lost address comes back from the record, running and stopped', async () => {
    await loseAddress(plane, '10.244.0.98');
    await plane.settle();
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234']);
    await plane.runVerb('stop', 'web');
    await loseAddress(plane, '10.244.0.98');
    await plane.settle();
    assert.deepEqual(await addressesOf(plane, 'web'), ['fd00:10:244::1234']);
    await plane.runVerb('start', 'web');
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234']);
  });

  await t.test('a lost record is rebuilt with the addresses', async () => {
    await deleteStoredRecord(plane, 'web');
    await plane.settle();
    assert.deepEqual(await recordedAddresses(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234']);
  });

  await t.test('a restore brings back the address of the snapshot; a copy gets new ones', async () => {
    await plane.runVerb('stop', 'web');
    await plane.apply(aSnapshot('before', 'web'));
    await plane.apply(askFor(aVm('web', HALTED), { default: ['10.244.0.97'] }));
    await plane.runVerb('start', 'web');
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.97', 'fd00:10:244::1234']);
    await plane.runVerb('stop', 'web');
    await plane.apply(aRestore('back', 'web', 'before'));
    await plane.apply(aRestore('copy', 'copy-of-web', 'before'));
    await plane.runVerb('start', 'web');
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234']);
    await plane.runVerb('start', 'copy-of-web');
    const copied = await addressesOf(plane, 'copy-of-web');
    assert.equal(copied.length, 2);
    assert.ok(!copied.includes('10.244.0.98'));
    await plane.delete('VirtualMachine', 'copy-of-web');
  });

  await t.test('an address of another VM is refused by admission, and at the start', async () => {
    const { status, body } = await plane.post(askFor(aVm('late', RUNNING), { default: ['10.244.0.98'] }));
    assert.equal(status, 422);
    assert.match(body.message, /"10.244.0.98": belongs to VirtualMachine "web"; ask for another address/);

    await plane.runVerb('stop', 'web');
    await loseAddress(plane, '10.244.0.98');
    await plane.apply(askFor(aVm('late', RUNNING), { default: ['10.244.0.98'] }));
    assert.equal((await addressesOf(plane, 'late'))[0], '10.244.0.98');
    const claims = 'Address 10.244.0.98 is also claimed by VirtualMachine';
    assert.match((await conditionOf(plane, 'web', 'DuplicateNetworkAddress')) ?? '', new RegExp(`^${claims} "late"`));
    assert.match((await conditionOf(plane, 'late', 'DuplicateNetworkAddress')) ?? '', new RegExp(`^${claims} "web"`));
    await plane.runVerb('start', 'web');
    assert.equal(
      await refusalOf(plane, 'web'),
      'NetworkAddressConflict: address 10.244.0.98 of interface "default" belongs to VirtualMachine "late"; ask for another one with the annotation network.kubevirt.io/addresses',
    );
    await plane.delete('VirtualMachine', 'late');
    assert.equal(plane.guests('web').length, 1, 'it starts when the address is free');
    assert.equal((await addressesOf(plane, 'web'))[0], '10.244.0.98');
    assert.equal(await conditionOf(plane, 'web', 'DuplicateNetworkAddress'), undefined);
  });

  await t.test('an instance without a VM owns its addresses itself', async () => {
    const { spec } = aVm('bare').spec.template;
    const vmi = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name: 'bare' }, spec };
    await plane.apply(askFor(vmi, { default: ['10.244.0.40'] }));
    const { spec: held } = (await plane.list('NetworkAddress')).find(({ spec: one }) => one.owner.name === 'bare');
    assert.deepEqual([held.address, held.owner.kind], ['10.244.0.40', 'VirtualMachineInstance']);
    const changed = await plane.call('PATCH', '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/bare', {
      body: askFor({ metadata: {} }, { default: ['10.244.0.41'] }),
    });
    assert.match(changed.body.message, /cannot be changed on an instance/);
    await plane.delete('VirtualMachineInstance', 'bare');
    assert.deepEqual(await addressesOf(plane, 'bare'), []);
  });

  await t.test('an orphaned guest keeps its address, and the next VM of its name takes it over', async () => {
    await plane.delete('VirtualMachine', 'web', { propagationPolicy: 'Orphan' });
    assert.deepEqual(await addressesOf(plane, 'web'), ['10.244.0.98', 'fd00:10:244::1234']);
    await plane.apply(aVm('web', RUNNING));
    await plane.runVerb('restart', 'web');
    const { metadata } = await plane.get('VirtualMachine', 'web');
    const owners = (await plane.list('NetworkAddress')).map(({ spec }) => `${spec.address} ${spec.owner.uid}`);
    assert.deepEqual(owners, [`10.244.0.98 ${metadata.uid}`, `fd00:10:244::1234 ${metadata.uid}`]);
    await plane.delete('VirtualMachine', 'web');
    assert.deepEqual(await plane.list('NetworkAddress'), []);
  });
});

test('a subnet without free addresses', async (t) => {
  let choices = 0;
  const chooseSubnets = async () => {
    choices++;
    return ['10.50.0.0/28'];
  };
  const plane = await startVmPlane(t, { guestNetwork: { chooseSubnets } });
  assert.deepEqual((await plane.get('GuestNetwork', 'default')).spec.subnets, ['10.50.0.0/28']);
  await plane.restartServer();
  assert.equal(choices, 1, 'the subnets of a plane are chosen once');
  const names = Array.from({ length: 13 }, (_, i) => `vm-${String(i).padStart(2, '0')}`);
  for (const name of names) await plane.beginApply(aVm(name, RUNNING));
  await plane.settle();
  const given = await plane.names('NetworkAddress');
  assert.deepEqual(given.toSorted(), Array.from({ length: 11 }, (_, i) => `10.50.0.${4 + i}`).toSorted());
  const waiting = names.filter((name) => plane.guests(name).length === 0);
  assert.equal(waiting.length, 2);
  assert.match(
    await refusalOf(plane, waiting[0]!),
    /^NetworkAddressesExhausted: interface "default" needs an address, but all 11 addresses of subnet 10.50.0.0\/28/,
  );
  const running = names.filter((name) => !waiting.includes(name));
  await plane.delete('VirtualMachine', running[0]!);
  assert.equal(waiting.filter((name) => plane.guests(name).length === 1).length, 1);
  await plane.delete('VirtualMachine', running[1]!);
  assert.equal(waiting.filter((name) => plane.guests(name).length === 1).length, 2);
});

const refusals: Record<string, { readonly request: unknown; readonly want: RegExp }> = {
  'text that is not JSON': {
    request: 'x',
    want: /must be a JSON object with a list of addresses for each network, such as \{"default":\["10.244.0.9"\]\}/,
  },
  'an unknown network': {
    request: { lan: ['10.244.0.99'] },
    want: /"lan": is not a network of the VM; those on the pod network are "default"/,
  },
  'an address outside of the subnet': {
    request: { default: ['10.9.0.99'] },
    want: /"10.9.0.99": is outside of subnet 10.244.0.0\/16 of GuestNetwork "default"/,
  },
  'a reserved address': {
    request: { default: ['fd00:10:244::1'] },
    want: /is reserved; guests can have fd00:10:244::10 to fd00:10:244:0:ffff:ffff:ffff:ffff/,
  },
  'two addresses of one family': {
    request: { default: ['10.244.0.99', '10.244.0.98'] },
    want: /"10.244.0.98": network "default" already asks for 10.244.0.99; at most one address of each family/,
  },
  'another prefix length': {
    request: { default: ['10.244.0.99/24'] },
    want: /the prefix length must be that of subnet 10.244.0.0\/16, or absent/,
  },
  'text that is not an address': {
    request: { default: ['10.244.0'] },
    want: /"10.244.0": is not an IP address: IPv4 address too short; expected one such as in/,
  },
};

test('what the API refuses about addresses', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });

  await t.test('without a GuestNetwork, a request has no effect', async () => {
    const { status, warnings } = await plane.post(askFor(aVm('early', HALTED), { default: ['10.9.0.99'] }));
    assert.equal(status, 201);
    assert.match(warnings.join(), /annotation network.kubevirt.io\/addresses has no effect: there is no GuestNetwork/);
  });

  for (const [title, subnets] of Object.entries({
    'no network': ['10.244.0.1/16'],
    'two of IPv4': ['10.244.0.0/16', '10.245.0.0/16'],
    'too small': ['10.244.0.0/29'],
    loopback: ['127.0.0.0/16'],
  })) {
    await t.test(`subnets: ${title}`, async () => {
      const { status, body } = await plane.post(guestNetwork(subnets));
      assert.equal(status, 422, body.message);
      assert.match(body.message, /spec.subnets: Invalid value/);
    });
  }

  await t.test('another name, and a change of the subnets', async () => {
    const named = await plane.post({ ...guestNetwork(), metadata: { name: 'second' } });
    assert.match(named.body.message, /the only GuestNetwork is "default"/);
    await plane.apply(guestNetwork());
    const url = '/apis/network.selfsame.io/v1/guestnetworks/default';
    const changed = await plane.call('PATCH', url, { body: { spec: { subnets: ['10.9.0.0/16'] } } });
    assert.match(changed.body.message, /cannot be changed: guests have addresses in these networks/);
    assert.equal((await plane.call('PATCH', url, { body: { spec: { mtu: 1400 } } })).status, 200);
  });

  for (const [title, { request, want }] of Object.entries(refusals)) {
    await t.test(`a request: ${title}`, async () => {
      const vm = askFor(aVm('refused', HALTED), request);
      if (request === 'x') vm.metadata.annotations[REQUEST] = 'x';
      const { status, body } = await plane.post(vm);
      assert.equal(status, 422, body.message);
      assert.match(body.message, want);
    });
  }

  await t.test('users cannot write addresses', async () => {
    await plane.apply(aVm('db', RUNNING));
    const [name] = await plane.names('NetworkAddress');
    const url = `/apis/network.selfsame.io/v1/networkaddresses/${name}`;
    for (const [method, body] of [
      ['DELETE', undefined],
      ['PATCH', { spec: { interface: 'other' } }],
    ] as const) {
      const refused = await plane.call(method, url, { body });
      assert.equal(refused.status, 403);
      assert.match(
        refused.body.message,
        /is written by Selfsame only; to change the address of a VirtualMachine, set its/,
      );
    }
  });

  await t.test('users cannot give a pod the addresses of another guest', async () => {
    const annotations = { 'network.selfsame.io/addresses': '{"default":["10.244.0.9/16"]}' };
    const [pod] = await plane.list('Pod');
    const url = '/api/v1/namespaces/default/pods';
    const container = { name: 'c', image: 'i' };
    const other = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'other', namespace: 'default', annotations },
      spec: { containers: [container] },
    };
    for (const refused of [
      await plane.call('PATCH', `${url}/${pod?.metadata.name}`, { body: { metadata: { annotations } } }),
      await plane.call('POST', url, { body: other }),
    ]) {
      assert.equal(refused.status, 403, refused.body.message);
      assert.match(
        refused.body.message,
        /annotation network.selfsame.io\/addresses of a pod is written by Selfsame only/,
      );
    }
    const labels = { colour: 'blue' };
    const allowed = await plane.call('PATCH', `${url}/${pod?.metadata.name}`, { body: { metadata: { labels } } });
    assert.equal(allowed.status, 200, allowed.body.message);
  });
});
