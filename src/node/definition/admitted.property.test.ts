/** Every instance that passes admission can be defined: the node refuses none of them at the start. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Disk } from '#api/domain/disk.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { Interface, Network } from '#api/domain/interface.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import { checkInstanceSpec } from '#api/validation/kinds/instance-rules.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { networksOf } from '#api/devices/attached-interfaces.ts';
import type { NetworkFacts } from '#node/definition/devices/attachment.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { anInput, aVmi, someMedia } from '#node/definition/testing/a-vmi.ts';
import { FULL_RUN } from '#test/support/full-run.ts';

const CONFIGURATION = configurationOf({
  spec: { configuration: { emulatedMachines: ['q35*', 'pc-q35*', 'pc', 'pc-i440fx-*'] } },
});
const RUNS = FULL_RUN ? 2000 : 600;

/** Mostly yields the first value, so that enough specs pass admission. */
const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(usual, ...others) });

const diskArb: fc.Arbitrary<Omit<Disk, 'name'>> = fc.oneof(
  fc.record({
    disk: fc.record(
      {
        bus: fc.constantFrom('virtio' as const, 'sata' as const, 'scsi' as const, 'ide' as const),
        readonly: mostly(false, true),
        pciAddress: mostly('', '0000:05:00.0', '0000:00:02.0', '0000:20:00.0', '0000:00:1f.0'),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({
    cdrom: fc.record(
      {
        bus: fc.constantFrom('sata' as const, 'scsi' as const, 'ide' as const),
        readonly: mostly(true, false),
        tray: mostly('closed' as const, 'open' as const),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({
    floppy: fc.record(
      { readonly: fc.boolean(), tray: mostly('closed' as const, 'open' as const) },
      { requiredKeys: [] },
    ),
  }),
  fc.record({ lun: fc.constantFrom({}, { bus: 'scsi' as const }), serial: mostly('', 'S-1') }),
  fc.record({ plugged: fc.boolean(), optional: fc.boolean() }),
  fc.constant({}),
);

const contentArb: fc.Arbitrary<Omit<VmiVolume, 'name'>> = fc.oneof(
  fc.constant({ emptyDisk: { capacity: '1Gi' } }),
  fc.record({
    persistentVolumeClaim: fc.record({ claimName: fc.constantFrom('a', 'b', 'c', 'd'), readOnly: mostly(false, true) }),
  }),
  fc.constant({ cloudInitNoCloud: { userData: 'x' } }),
  fc.constant({ directLun: { guid: '3600140580e1c' } }),
);

const nicArb: fc.Arbitrary<{ nic: Omit<Interface, 'name'>; network: Omit<Network, 'name'> }> = fc.record({
  nic: fc
    .tuple(
      mostly('virtio' as const, 'e1000e' as const, 'e1000' as const, 'rtl8139' as const),
      mostly('', '02:00:00:00:00:01', '02-00-00-00-00-02', '03:00:00:00:00:01', '02-00:00-00:00:01'),
      mostly('bridge' as const, 'masquerade' as const),
      mostly(undefined, 1, 2),
    )
    .map(([model, macAddress, binding, bootOrder]) => ({
      model,
      macAddress,
      [binding]: {},
      ...(bootOrder === undefined ? {} : { bootOrder }),
    })),
  network: mostly<Omit<Network, 'name'>>({ multus: { networkName: 'br0' } }, { pod: {} }),
});

const e1000esArb = fc.nat({ max: 10 }).map((count) =>
  Array.from({ length: count }, () => ({
    nic: { model: 'e1000e' as const, bridge: {} },
    network: { multus: { networkName: 'br0' } },
  })),
);

const domainArb: fc.Arbitrary<DomainSpec> = fc.record(
  {
    cpu: fc.record(
      { model: mostly('', 'host-model', 'Skylake-Client-v1', 'a,b'), sockets: mostly(1, 16), cores: mostly(2, 32) },
      { requiredKeys: [] },
    ),
    resources: mostly<NonNullable<DomainSpec['resources']>>(
      { requests: { cpu: '1500m', memory: '512Mi' } },
      { requests: { cpu: '1000' } },
      { limits: { cpu: 300 } },
    ),
    machine: fc.oneof(
      mostly({ type: 'q35' }, { type: '' }, { type: 'pc-q35-6.2' }),
      fc.constantFrom({ type: 'pc' }, { type: 'pc-i440fx-7.2' }),
    ),
    firmware: mostly<NonNullable<DomainSpec['firmware']>>(
      { bootloader: { bios: {} } },
      { kernelBoot: {} },
      { kernelBoot: { container: { image: GUEST_IMAGE } } },
      { bootloader: { efi: {} } },
      { bootloader: { efi: { secureBoot: false } } },
    ),
    features: mostly<NonNullable<DomainSpec['features']>>({}, { smm: {} }, { smm: { enabled: false } }),
  },
  { requiredKeys: [] },
);

const specArb: fc.Arbitrary<VmiSpec> = fc
  .tuple(
    domainArb,
    fc.array(fc.tuple(diskArb, contentArb), { maxLength: 5 }),
    fc.oneof({ weight: 4, arbitrary: fc.array(nicArb, { maxLength: 3 }) }, { weight: 1, arbitrary: e1000esArb }),
  )
  .map(([domain, disks, nics]) => ({
    domain: {
      memory: { guest: '512Mi' },
      ...domain,
      devices: {
        disks: disks.map(([disk], i) => ({ ...disk, name: `d${i}` })),
        interfaces: nics.map(({ nic }, i) => ({ ...nic, name: `n${i}` })),
      },
    },
    volumes: disks.map(([, content], i) => ({ ...content, name: `d${i}` })),
    networks: nics.map(({ network }, i) => ({ ...network, name: `n${i}` })),
  }));

/** Returns media as volumes/ prepares them. */
function mediaOf({ volumes = [] }: VmiSpec) {
  return new Map(
    volumes.flatMap(({ name, persistentVolumeClaim, directLun }) => [
      ...someMedia([name], {
        readonly: persistentVolumeClaim?.readOnly === true,
        // Claims with volume mode Block. Others cannot be a LUN, but only the node can check that.
        ...((directLun ?? persistentVolumeClaim) !== undefined && { source: { path: `/dev/${name}`, format: 'raw' } }),
      }),
    ]),
  );
}

/** The networks of the spec, on a node with a default network and all definitions. */
function networkFactsOf(spec: VmiSpec): NetworkFacts {
  const names = networksOf(spec).map(({ name }) => name);
  return {
    pod: { namespace: 'default', name: 'virt-launcher', uid: 'a-pod' },
    podNetwork: { type: 'default' },
    addresses: Object.fromEntries(names.map((name) => [name, ['10.244.0.5/16', 'fd00::5/64']])),
    definitions: new Map(names.map((name) => [name, '{"plugins":[{"type":"bridge"}]}'])),
  };
}

test('a node can define every spec that passes admission', () => {
  let admitted = 0;
  fc.assert(
    fc.property(specArb, (spec) => {
      if (checkInstanceSpec(spec, 'spec', CONFIGURATION).length > 0) return;
      admitted++;
      const { domain, ...rest } = spec;
      const kernel = domain.firmware?.kernelBoot === undefined ? undefined : { kernelPath: '/k' };
      const { problems } = defineDomain(
        anInput(aVmi(domain, rest), { volumes: mediaOf(spec), kernel, network: networkFactsOf(spec) }),
      );
      assert.deepEqual(problems, undefined);
    }),
    { numRuns: RUNS },
  );
  assert.ok(admitted > RUNS / 10, `only ${admitted} of ${RUNS} passed admission`);
});
