/** Tests the predicted changes of uuid, serial, machine type, MACs and memory of a VM. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { identityDiff } from '#api/identity/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import {
  UID,
  UUID,
  OTHER,
  MADE_MAC,
  aSpec,
  owner,
  aVm,
  aRecord,
  aVmi,
  type Case,
  TEMPLATE_CHANGED,
  testDiffs,
} from '#api/testing/diff-cases.ts';

const cases: Record<string, Case> = {
  'nothing if nothing changed': { want: [] },
  'nothing if nothing changed while it runs': { vmi: aVmi(aSpec()), want: [] },
  'nothing for a VM that never ran': { spec: aSpec({ disks: [] }), record: aRecord({ devices: undefined }), want: [] },
  'nothing without a record': { record: undefined, spec: aSpec({}, { firmware: { uuid: OTHER } }), want: [] },
  'nothing from the record of another VM': {
    spec: aSpec({}, { firmware: { uuid: OTHER } }),
    record: { ...aRecord(), metadata: { name: 'db', ownerReferences: [{ ...owner, uid: 'other' }] } },
    want: [],
  },
  'nothing from an instance of another VM': {
    spec: aSpec({}, { memory: { guest: '2Gi' } }),
    vmi: aVmi(aSpec(), { ownerReferences: [] }),
    want: [],
  },
  'CPU features, clock and chassis that differ from the instance': {
    vmi: aVmi(aSpec()),
    spec: aSpec({}, { cpu: { features: [{ name: 'avx2' }] }, clock: { timezone: 'UTC' }, chassis: { asset: 'a' } }),
    want: [
      `cpu features: "none" -> [{"name":"avx2"}] (${TEMPLATE_CHANGED})`,
      `chassis: "none" -> {"asset":"a"} (${TEMPLATE_CHANGED})`,
      `clock: "none" -> {"timezone":"UTC"} (${TEMPLATE_CHANGED})`,
    ],
  },
  'another uuid': {
    spec: aSpec({}, { firmware: { uuid: OTHER } }),
    want: [`uuid: ${UUID} -> ${OTHER} (${TEMPLATE_CHANGED})`],
  },
  'nothing for the same uuid in capitals': { spec: aSpec({}, { firmware: { uuid: UUID.toUpperCase() } }), want: [] },
  'a serial if there was none': {
    spec: aSpec({}, { firmware: { uuid: UUID, serial: 's-1' } }),
    want: [`serial: none -> s-1 (${TEMPLATE_CHANGED})`],
  },
  'nothing for a serial that the record keeps': {
    record: aRecord({}, { firmware: { uuid: UUID, serial: 's-1' } }),
    want: [],
  },
  'another machine type of the same chipset': {
    spec: aSpec({}, { machine: { type: 'pc-q35-6.2' } }),
    want: [`machine type: pc-q35-7.2 -> pc-q35-6.2 (${TEMPLATE_CHANGED})`],
  },
  'an alias instead of a machine type while it runs': {
    vmi: aVmi(aSpec({}, { machine: { type: 'pc-q35-6.2' } }), {}, { machine: { type: 'pc-q35-6.2' } }),
    record: aRecord({ machine: { type: 'pc-q35-6.2' } }),
    want: [`machine type: pc-q35-6.2 -> q35 (resolved at the start) (${TEMPLATE_CHANGED})`],
  },
  'another chipset, and all addresses with it': {
    spec: aSpec({}, { machine: { type: 'pc' } }),
    want: [
      `machine type: pc-q35-7.2 -> pc (resolved at the start) (${TEMPLATE_CHANGED})`,
      'addresses of all devices: of q35 -> of i440fx (addresses of the chipset q35 are not valid on i440fx: every device gets a new one)',
      ...Array.from({ length: 8 }, (_, port) => {
        const from = `pcie-root-port, address 0000:00:02.${port}`;
        return `rp${port}: ${from} -> not present (the new chipset has no root ports)`;
      }),
    ],
  },
  'memory, CPUs and firmware that differ from the instance': {
    vmi: aVmi(aSpec()),
    spec: aSpec(
      {},
      {
        memory: { guest: '2Gi' },
        cpu: { cores: 4 },
        firmware: { uuid: UUID, bootloader: { efi: { secureBoot: false } } },
      },
    ),
    want: [
      `cpu topology: 1 sockets, 1 cores, 1 threads -> 1 sockets, 4 cores, 1 threads (${TEMPLATE_CHANGED})`,
      `memory: 1Gi -> 2Gi (${TEMPLATE_CHANGED})`,
      `firmware: BIOS -> EFI (${TEMPLATE_CHANGED})`,
    ],
  },
  'secure boot, with SMM': {
    vmi: aVmi(aSpec()),
    spec: aSpec({}, { firmware: { uuid: UUID, bootloader: { efi: {} } } }),
    want: [`firmware: BIOS -> EFI with secure boot (${TEMPLATE_CHANGED})`, `smm: off -> on (${TEMPLATE_CHANGED})`],
  },
  'nothing for the same memory in other units': {
    vmi: aVmi(aSpec()),
    spec: aSpec({}, { memory: { guest: '1024Mi' } }),
    want: [],
  },
  'a MAC that the template sets': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, macAddress: 'de:ad:00:00:be:ef' }] }),
    want: [`MAC of nic-default: ${MADE_MAC} -> de:ad:00:00:be:ef (${TEMPLATE_CHANGED})`],
  },
  'a MAC that the template no longer sets': {
    vmi: aVmi(aSpec({ interfaces: [{ name: 'default', masquerade: {}, macAddress: 'de:ad:00:00:be:ef' }] })),
    record: aRecord({}, { interfaces: [] }),
    want: [
      `MAC of nic-default: de:ad:00:00:be:ef -> ${deriveMac(UID, 'default')} (the template no longer names a MAC address: one is derived and kept)`,
    ],
  },
  'nothing for the same MAC in another notation': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, macAddress: '02-11-22-33-44-55' }] }),
    want: [],
  },
};

testDiffs(cases);

test('a template without a machine type has the default of the KubeVirt object', () => {
  const configuration = configurationOf({ spec: { configuration: { machineType: 'pc-q35-6.2' } } });
  const diff = identityDiff({ vm: aVm(aSpec({}, { machine: {} })), record: aRecord(), configuration });
  assert.deepEqual(diff, [
    {
      what: 'machine type',
      from: 'pc-q35-7.2',
      to: 'pc-q35-6.2',
      why: 'the template names no machine type: the default of the KubeVirt object applies',
    },
  ]);
});
