import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkAddress } from '#api/network/network-address.ts';
import { planAddresses, type AddressWorld } from '#api/network/plan-addresses.ts';
import { anAddress, anAddressWorld, ownerOf, SUBNETS } from '#api/network/testing/address-world.ts';
import type { Stored } from '#kube/meta.ts';

const DB = ownerOf('db');
const OTHER = ownerOf('other');
const FORMER = ownerOf('db', 'former');
const V4 = '10.244.67.138';
const V6 = 'fd00:10:244::438a';
const ASK = 'ask for another one with the annotation network.kubevirt.io/addresses';

interface Case {
  readonly world?: Partial<AddressWorld> & { all?: readonly Stored<NetworkAddress>[]; subnets?: readonly string[] };
  readonly create?: readonly string[];
  readonly adopt?: readonly string[];
  readonly delete?: readonly string[];
  readonly problem?: string;
  readonly addresses?: Record<string, readonly string[]>;
}

/** Returns the addresses of the guests of a /28: all but the first four and the last. */
const full28 = Array.from({ length: 11 }, (_, i) =>
  anAddress(`10.50.0.${4 + i}`, ownerOf(`vm-${i}`), { subnet: '10.50.0.0/28' }),
);

const cases: Record<string, Case> = {
  'a new VM gets addresses of both families with the same host number': { create: [V4, V6] },
  'a held address stays, and its counterpart gets the same host number': {
    world: { all: [anAddress('10.244.7.9', DB)] },
    create: ['fd00:10:244::709'],
  },
  'an address of IPv4 only': { world: { subnets: ['10.244.0.0/16'] }, create: [V4] },
  'an address of IPv6 only': { world: { subnets: ['fd00:10:244::/120'] }, create: ['fd00:10:244::ad'] },
  'the next address if the first is taken, also for the other family': {
    world: { all: [anAddress(V4, OTHER)] },
    create: ['10.244.67.139', 'fd00:10:244::438b'],
  },
  'the next address of the other family if the same number is taken': {
    world: { all: [anAddress(V6, OTHER)] },
    create: [V4, 'fd00:10:244::438b'],
  },
  'nothing to do if all addresses exist': {
    world: { all: [anAddress(V4, DB), anAddress(V6, DB)] },
    addresses: { default: [`${V4}/16`, `${V6}/64`] },
  },
  'each interface has its own addresses': {
    world: { interfaces: ['default', 'second'], subnets: ['10.244.0.0/16'] },
    create: [V4, '10.244.11.126'],
  },
  'an instance without interfaces needs none': { world: { interfaces: [] }, addresses: {} },
  'a requested address': {
    world: { requested: { default: ['10.244.0.99/16'] } },
    create: ['10.244.0.99', 'fd00:10:244::63'],
  },
  'an owner of another namespace with the same uid does not share its addresses': {
    world: { requested: { default: ['10.244.0.99'] }, all: [anAddress('10.244.0.99', { ...DB, namespace: 'other' })] },
    problem: `NetworkAddressConflict: address 10.244.0.99 of interface "default" belongs to a VirtualMachine in another namespace, which kubectl get networkaddress 10.244.0.99 shows; ${ASK}`,
  },
  'requested addresses of both families': {
    world: { requested: { default: ['fd00:10:244::77', '10.244.0.99'] } },
    create: ['10.244.0.99', 'fd00:10:244::77'],
  },
  'held addresses stay until the requested one exists': {
    world: { requested: { default: ['10.244.0.99'] }, all: [anAddress(V4, DB), anAddress(V6, DB)] },
    create: ['10.244.0.99'],
  },
  'held addresses that are not wanted are deleted once the requested one exists': {
    world: {
      requested: { default: ['10.244.0.99'] },
      all: [anAddress(V4, DB), anAddress('10.244.0.99', DB), anAddress(V6, DB)],
    },
    delete: [V4],
    addresses: { default: ['10.244.0.99/16', `${V6}/64`] },
  },
  'the addresses of a removed interface are deleted': {
    world: { all: [anAddress(V4, DB), anAddress(V6, DB), anAddress('10.244.0.50', DB, { nic: 'gone' })] },
    delete: ['10.244.0.50'],
    addresses: { default: [`${V4}/16`, `${V6}/64`] },
  },
  'addresses of an earlier subnet are replaced': {
    world: { all: [anAddress('10.9.0.20', DB, { subnet: '10.9.0.0/16' })], subnets: ['10.244.0.0/16'] },
    create: [V4],
  },
  'interfaces can exchange their addresses': {
    world: {
      interfaces: ['default', 'second'],
      subnets: ['10.244.0.0/16'],
      requested: { default: ['10.244.0.51'], second: ['10.244.0.50'] },
      all: [anAddress('10.244.0.50', DB), anAddress('10.244.0.51', DB, { nic: 'second' })],
    },
    adopt: ['10.244.0.51 default', '10.244.0.50 second'],
  },
  'an interface gives up the address that another one asks for': {
    world: {
      interfaces: ['default', 'second'],
      subnets: ['10.244.0.0/16'],
      requested: { second: ['10.244.0.50'] },
      all: [anAddress('10.244.0.50', DB)],
    },
    create: [V4],
    adopt: ['10.244.0.50 second'],
  },
  'an address of an earlier VM of the same name is taken over': {
    world: {
      subnets: ['10.244.0.0/16'],
      requested: { default: ['10.244.0.99'] },
      all: [anAddress('10.244.0.99', FORMER)],
      isAbandoned: () => true,
    },
    adopt: ['10.244.0.99 default'],
  },
  'an address of an earlier VM of the same name that may still exist is not': {
    world: { requested: { default: ['10.244.0.99'] }, all: [anAddress('10.244.0.99', FORMER)] },
    problem: `NetworkAddressConflict: address 10.244.0.99 of interface "default" belongs to VirtualMachine "db"; ${ASK}`,
  },
  'an address of another VM': {
    world: { requested: { default: ['10.244.0.99'] }, all: [anAddress('10.244.0.99', OTHER)], isAbandoned: () => true },
    problem: `NetworkAddressConflict: address 10.244.0.99 of interface "default" belongs to VirtualMachine "other"; ${ASK}`,
  },
  'an address of a VM in another namespace': {
    world: {
      requested: { default: ['10.244.0.99'] },
      all: [anAddress('10.244.0.99', { ...OTHER, namespace: 'secret' })],
    },
    problem: `NetworkAddressConflict: address 10.244.0.99 of interface "default" belongs to a VirtualMachine in another namespace, which kubectl get networkaddress 10.244.0.99 shows; ${ASK}`,
  },
  'one address for two interfaces': {
    world: {
      interfaces: ['default', 'second'],
      requested: { default: ['10.244.0.99'], second: ['10.244.0.99'] },
    },
    problem: `NetworkAddressConflict: address 10.244.0.99 of interface "second" is also that of interface "default"; ${ASK}`,
  },
  'an address outside of the subnet': {
    world: { requested: { default: ['192.168.0.9'] } },
    problem: `NetworkAddressUnavailable: address 192.168.0.9 of interface "default" is outside of subnet 10.244.0.0/16 of GuestNetwork "default"; ${ASK}`,
  },
  'a reserved address': {
    world: { requested: { default: ['10.244.0.1'] } },
    problem: `NetworkAddressUnavailable: address 10.244.0.1 of interface "default" is reserved; guests can have 10.244.0.16 to 10.244.255.254; ${ASK}`,
  },
  'a full subnet': {
    world: { subnets: ['10.50.0.0/28'], all: full28 },
    problem:
      'NetworkAddressesExhausted: interface "default" needs an address, but all 11 addresses of subnet 10.50.0.0/28 of GuestNetwork "default" are given away; delete VirtualMachines that are not needed, stopped ones included',
  },
  'the last address of a subnet': {
    world: { subnets: ['10.50.0.0/28'], all: full28.slice(1) },
    create: ['10.50.0.4'],
  },
  'the last address of a subnet is requested by another interface': {
    world: {
      interfaces: ['default', 'second'],
      requested: { second: ['10.50.0.4'] },
      subnets: ['10.50.0.0/28'],
      all: full28.slice(1),
    },
    problem:
      'NetworkAddressesExhausted: interface "default" needs an address, but all 11 addresses of subnet 10.50.0.0/28 of GuestNetwork "default" are given away; delete VirtualMachines that are not needed, stopped ones included',
  },
};

for (const [title, { world, problem, addresses, ...want }] of Object.entries(cases)) {
  test(`plans ${title}`, () => {
    const plan = planAddresses(anAddressWorld(world));
    assert.deepEqual(
      plan.create.map(({ spec }) => spec.address),
      want.create ?? [],
    );
    assert.deepEqual(
      plan.adopt.map(({ spec }) => `${spec.address} ${spec.interface}`),
      want.adopt ?? [],
    );
    assert.deepEqual(
      plan.delete.map(({ spec }) => spec.address),
      want.delete ?? [],
    );
    assert.equal(plan.problem && `${plan.problem.reason}: ${plan.problem.message}`, problem);
    assert.deepEqual(plan.addresses, addresses);
  });
}

test('a created address names its owner, its subnet and its interface', () => {
  const [v4, v6] = planAddresses(anAddressWorld()).create;
  assert.deepEqual(v4, {
    apiVersion: 'network.selfsame.io/v1',
    kind: 'NetworkAddress',
    metadata: { name: V4 },
    spec: { address: V4, network: 'default', subnet: SUBNETS[0], interface: 'default', owner: DB },
  });
  assert.equal(v6?.metadata.name, 'fd00-0010-0244-0000-0000-0000-0000-438a');
});
