import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildGuestNetwork } from '#api/network/guest-network.ts';
import { claimedAddressesOf, ownedAddressesOf, requestAnnotation } from '#api/network/owned-addresses.ts';
import { anAddress, ownerOf, SUBNETS } from '#api/network/testing/address-world.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentitySpec } from '#api/virtual-machine-identity/kind.ts';

const REQUEST = 'network.kubevirt.io/addresses';
const NETWORK = buildGuestNetwork(SUBNETS);
const DB = ownerOf('db');

const annotated = (request: unknown) => ({ annotations: { [REQUEST]: JSON.stringify(request) } });

function aVm({ own, template, networks = [{ name: 'default', pod: {} }] }: VmOverrides = {}): VirtualMachine {
  const devices = { interfaces: networks.map(({ name }) => ({ name })) };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', ...(own === undefined ? {} : annotated(own)) },
    spec: {
      template: {
        ...(template === undefined ? {} : { metadata: annotated(template) }),
        spec: { domain: { devices }, networks },
      },
    },
  };
}

interface VmOverrides {
  readonly own?: unknown;
  readonly template?: unknown;
  readonly networks?: { name: string; pod?: object; multus?: { networkName: string } }[];
}

const recorded = (...addresses: string[]): IdentitySpec => ({
  interfaces: [{ name: 'default', macAddress: '02:00:00:00:00:01', addresses }],
});

const requests: Record<string, { vm?: VirtualMachine; record?: IdentitySpec; without?: boolean; want?: unknown }> = {
  'nothing for a new VM': { record: {} },
  'the recorded addresses': {
    record: recorded('10.244.0.50', 'fd00:10:244::5'),
    want: ['10.244.0.50', 'fd00:10:244::5'],
  },
  'what the VM asks for, and the record for the other family': {
    vm: aVm({ own: { default: ['10.244.0.99'] } }),
    record: recorded('10.244.0.50', 'fd00:10:244::5'),
    want: ['10.244.0.99', 'fd00:10:244::5'],
  },
  'what the template asks for rather than the metadata': {
    vm: aVm({ own: { default: ['10.244.0.99'] }, template: { default: ['10.244.0.98'] } }),
    record: recorded('10.244.0.50'),
    want: ['10.244.0.98'],
  },
  'no recorded address outside of the network': { record: recorded('192.168.0.5') },
  'no recorded address without a network': { record: recorded('10.244.0.50'), without: true },
  'no recorded address of an interface that left the pod network': {
    vm: aVm({ networks: [{ name: 'default', multus: { networkName: 'br0' } }] }),
    record: recorded('10.244.0.50'),
  },
};

for (const [title, { vm = aVm(), record = {}, without = false, want }] of Object.entries(requests)) {
  test(`an instance asks for ${title}`, () => {
    const annotation = requestAnnotation(vm, record, without ? undefined : NETWORK);
    assert.deepEqual(annotation, want === undefined ? {} : { [REQUEST]: JSON.stringify({ default: want }) });
  });
}

const V4 = anAddress('10.244.0.50', DB);
const V6 = anAddress('fd00:10:244::5', DB);
const owned: Record<string, { held: (typeof V4)[]; request?: unknown; want?: string[] }> = {
  'both addresses, IPv4 first': { held: [V6, V4], want: ['10.244.0.50', 'fd00:10:244::5'] },
  'nothing until both exist': { held: [V4] },
  'nothing until the requested one exists': { held: [V4, V6], request: { default: ['10.244.0.99'] } },
  'the requested one while the old one still exists': {
    held: [V4, V6, anAddress('10.244.0.99', DB)],
    request: { default: ['10.244.0.99/16'] },
    want: ['10.244.0.99', 'fd00:10:244::5'],
  },
  'nothing while it has two of one family': { held: [V4, V6, anAddress('10.244.0.99', DB)] },
};

for (const [title, { held, request = {}, want }] of Object.entries(owned)) {
  test(`a VM owns ${title}`, () => {
    assert.deepEqual(ownedAddressesOf(held, NETWORK, { metadata: annotated(request) }).get('default'), want);
  });
}

test('a VM claims what it asks for and otherwise what it has, until it is being deleted', () => {
  const vm = aVm({ own: { default: ['FD00:10:244:0::77'] } });
  assert.deepEqual(claimedAddressesOf(vm, recorded('10.244.0.50', 'fd00:10:244::5')), [
    { interface: 'default', address: 'fd00:10:244::77' },
    { interface: 'default', address: '10.244.0.50' },
  ]);
  const deleted = { ...vm, metadata: { ...vm.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  assert.deepEqual(claimedAddressesOf(deleted, recorded('10.244.0.50')), []);
});
