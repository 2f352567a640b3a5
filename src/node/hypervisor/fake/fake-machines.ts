/**
 * The machine types of simulated nodes: RHEL's types as the proposal of the machine type transition lists them
 * (qemu-kvm of CentOS Stream 9: 7.6 and all of 8 are deprecated, `q35` and `pc` are aliases of RHEL's types), and those
 * of QEMU 7.2.
 */
import type { MachineType } from '#node/hardware/capabilities.ts';

const Q35_VERSIONS =
  '7.2 7.1 7.0 6.2 6.1 6.0 5.2 5.1 5.0 4.2 4.1 4.0.1 4.0 3.1 3.0 2.12 2.11 2.10 2.9 2.8 2.7 2.6 2.5 2.4'.split(' ');
const I440FX_VERSIONS =
  '7.2 7.1 7.0 6.2 6.1 6.0 5.2 5.1 5.0 4.2 4.1 4.0 3.1 3.0 2.12 2.11 2.10 2.9 2.8 2.7 2.6 2.5 2.4 2.3 2.2 2.1 2.0'.split(
    ' ',
  );
const DEPRECATED_I440FX_VERSIONS = ['1.7', '1.6', '1.5', '1.4'];
const RHEL_Q35_VERSIONS = '9.2.0 9.0.0'.split(' ');
const DEPRECATED_RHEL_Q35_VERSIONS = '8.6.0 8.5.0 8.4.0 8.3.0 8.2.0 8.1.0 8.0.0 7.6.0'.split(' ');

const Q35_CPUS = 288;
const I440FX_CPUS = 255;

export const FAKE_MACHINES: readonly MachineType[] = [
  ...RHEL_Q35_VERSIONS.map((version) =>
    machine(`pc-q35-rhel${version}`, Q35_CPUS, version === '9.2.0' ? 'q35' : undefined),
  ),
  ...DEPRECATED_RHEL_Q35_VERSIONS.map((version) => deprecated(machine(`pc-q35-rhel${version}`, Q35_CPUS))),
  deprecated(machine('pc-i440fx-rhel7.6.0', I440FX_CPUS, 'pc')),
  ...Q35_VERSIONS.map((version) => machine(`pc-q35-${version}`, Q35_CPUS)),
  ...I440FX_VERSIONS.map((version) => machine(`pc-i440fx-${version}`, I440FX_CPUS)),
  ...DEPRECATED_I440FX_VERSIONS.map((version) => deprecated(machine(`pc-i440fx-${version}`, I440FX_CPUS))),
];

function machine(name: string, maxCpus: number, alias?: string): MachineType {
  return { name, ...(alias === undefined ? {} : { alias }), deprecated: false, maxCpus };
}

function deprecated(type: MachineType): MachineType {
  return { ...type, deprecated: true };
}
