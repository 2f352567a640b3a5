import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identityDiff } from '#api/identity/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { buildGuestNetwork } from '#api/network/guest-network.ts';
import { aRecord, aSpec, aVm, MADE_MAC } from '#api/testing/diff-cases.ts';

interface Case {
  readonly recorded?: string[];
  readonly request?: string[];
  readonly subnets?: string[] | undefined;
  readonly want: string[];
}

const ASKED = 'the annotation network.kubevirt.io/addresses asks for it';

const cases: Record<string, Case> = {
  'the first addresses of a VM that has none': {
    want: [
      'address of nic-default: none -> one of 10.244.0.0/16, assigned at the start (the VM has no address there yet)',
      'address of nic-default: none -> one of fd00::/64, assigned at the start (the VM has no address there yet)',
    ],
  },
  'nothing if the VM keeps its addresses': { recorded: ['10.244.0.50', 'fd00::50'], want: [] },
  'nothing without a network': { subnets: undefined, want: [] },
  'the address that the VM asks for': {
    recorded: ['10.244.0.50', 'fd00::50'],
    request: ['10.244.0.99'],
    want: [`address of nic-default: 10.244.0.50 -> 10.244.0.99 (${ASKED})`],
  },
  'a recorded address outside of the network': {
    recorded: ['192.168.0.5', 'fd00::50'],
    want: [
      'address of nic-default: 192.168.0.5 -> one of 10.244.0.0/16, assigned at the start (the recorded address is outside of the GuestNetwork "default")',
    ],
  },
};

for (const [title, { recorded, request, want, ...rest }] of Object.entries(cases)) {
  test(`reports ${title}`, () => {
    const subnets = 'subnets' in rest ? rest.subnets : ['10.244.0.0/16', 'fd00::/64'];
    const annotations = request && { 'network.kubevirt.io/addresses': JSON.stringify({ default: request }) };
    const vm = aVm(aSpec());
    const diff = identityDiff({
      vm: { ...vm, metadata: { ...vm.metadata, ...(annotations && { annotations }) } },
      record: aRecord({}, { interfaces: [{ name: 'default', macAddress: MADE_MAC, addresses: recorded }] }),
      configuration: configurationOf(undefined),
      network: subnets && buildGuestNetwork(subnets),
    });
    assert.deepEqual(
      diff.map(({ what, from, to, why }) => `${what}: ${from} -> ${to} (${why})`),
      want,
    );
  });
}
