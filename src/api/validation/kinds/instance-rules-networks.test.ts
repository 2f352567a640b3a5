/** Tests the rules for interfaces, networks and PCI addresses. */
import { type Case, devices, nics, testRules } from '#api/validation/testing/instance-spec-cases.ts';

const e1000e = (count: number) => {
  const names = Array.from({ length: count }, (_, i) => `n${i}`);
  return nics(
    names.map((name) => ({ name, model: 'e1000e', bridge: {} })),
    names.map((name) => ({ name, multus: { networkName: 'br0' } })),
  );
};
const POD = { name: 'default', pod: {} };
const MASQUERADE = { name: 'default', masquerade: {} };
const PLACE = 'must be 0000:<bus>:00.0 with a bus from 01 to 20 (hexadecimal), which is behind a root port';

const MAC = 'must be a MAC address (e.g. 02:00:00:12:34:56)';

const cases: Record<string, Case> = {
  'an interface on a bridge': {
    spec: nics([{ name: 'lan', bridge: {} }], [{ name: 'lan', multus: { networkName: 'br0' } }]),
  },
  'an interface without a network, and a network without an interface': {
    spec: nics([MASQUERADE], [{ name: 'lan', pod: {} }]),
    want: [
      'devices.interfaces[0].name: Invalid value: "default": there is no network with this name in spec.networks',
      'networks[0].name: Invalid value: "lan": there is no interface with this name in spec.domain.devices.interfaces',
    ],
  },
  'an interface without a binding': {
    spec: nics([{ name: 'default' }], [POD]),
    want: ['devices.interfaces[0]: Required value: one of masquerade, bridge must be set'],
  },
  'an interface with two bindings': {
    spec: nics([{ name: 'default', masquerade: {}, bridge: {} }], [POD]),
    want: ['devices.interfaces[0]: Forbidden: only one of masquerade, bridge may be set'],
  },
  'a bridge binding with the pod network': {
    spec: nics([{ name: 'default', bridge: {} }], [POD]),
    want: [],
  },
  'a masquerade binding with a multus network': {
    spec: nics([MASQUERADE], [{ name: 'default', multus: { networkName: 'br0' } }]),
    want: ['devices.interfaces[0].masquerade: Forbidden: only possible with a pod network'],
  },
  'two pod networks': {
    spec: nics([MASQUERADE, { name: 'b', masquerade: {} }], [POD, { name: 'b', pod: {} }]),
    want: [],
  },
  'a network without a source': {
    spec: nics([MASQUERADE], [{ name: 'default' }]),
    want: ['networks[0]: Required value: one of pod, multus must be set'],
  },
  'a definition of another namespace': {
    spec: nics([{ name: 'lan', bridge: {} }], [{ name: 'lan', multus: { networkName: 'default/lan' } }]),
    want: [],
  },
  'private networks': {
    spec: nics(
      [MASQUERADE],
      [{ name: 'default', pod: { vmNetworkCIDR: '10.9.0.0/24', vmIPv6NetworkCIDR: 'fd9::/64' } }],
    ),
    want: [],
  },
  'invalid private networks': {
    spec: nics(
      [MASQUERADE],
      [{ name: 'default', pod: { vmNetworkCIDR: '10.9.0.1/24', vmIPv6NetworkCIDR: '10.9.0.0/24' } }],
    ),
    want: [
      'networks[0].pod.vmNetworkCIDR: Invalid value: "10.9.0.1/24": "10.9.0.1/24" is not a valid IP address or network: the network is 10.9.0.0/24',
      'networks[0].pod.vmIPv6NetworkCIDR: Invalid value: "10.9.0.0/24": must be an IPv6 network',
    ],
  },
  'a bridge name with options': {
    spec: nics([{ name: 'lan', bridge: {} }], [{ name: 'lan', multus: { networkName: 'br0,x=y' } }]),
    want: [
      'networks[0].multus.networkName: Invalid value: "br0,x=y": must be the name of a NetworkAttachmentDefinition, or <namespace>/<name>',
    ],
  },
  'an invalid MAC': {
    spec: nics([{ ...MASQUERADE, macAddress: '02:00' }], [POD]),
    want: [`devices.interfaces[0].macAddress: Invalid value: "02:00": ${MAC}`],
  },
  'a multicast MAC': {
    spec: nics([{ ...MASQUERADE, macAddress: '03:00:00:00:00:01' }], [POD]),
    want: [
      'devices.interfaces[0].macAddress: Invalid value: "03:00:00:00:00:01": must be a unicast MAC address: the first byte must be even',
    ],
  },
  'the zero MAC': {
    spec: nics([{ ...MASQUERADE, macAddress: '00:00:00:00:00:00' }], [POD]),
    want: ['devices.interfaces[0].macAddress: Invalid value: "00:00:00:00:00:00": must not be zero'],
  },
  'the same MAC twice': {
    spec: nics(
      [
        { ...MASQUERADE, macAddress: '02:00:00:00:00:0a' },
        { name: 'lan', bridge: {}, macAddress: '02:00:00:00:00:0A' },
      ],
      [POD, { name: 'lan', multus: { networkName: 'br0' } }],
    ),
    want: ['devices.interfaces[1].macAddress: Duplicate value: "02:00:00:00:00:0A"'],
  },

  'the same boot order twice': {
    spec: nics([{ ...MASQUERADE, bootOrder: 1 }], [POD]),
    want: [
      'devices.interfaces[0].bootOrder: Invalid value: 1: Boot order for spec.domain.devices.interfaces[0].bootOrder already set for a different device.',
    ],
  },

  'a PCI address of an interface': { spec: nics([{ ...MASQUERADE, pciAddress: '0000:20:00.0' }], [POD]) },
  'invalid PCI addresses': {
    spec: nics(
      [
        { ...MASQUERADE, pciAddress: '0000:21:00.0' },
        { name: 'lan', bridge: {}, pciAddress: '0000:00:02.0' },
      ],
      [POD, { name: 'lan', multus: { networkName: 'br0' } }],
    ),
    want: [
      `devices.interfaces[0].pciAddress: Invalid value: "0000:21:00.0": ${PLACE}`,
      `devices.interfaces[1].pciAddress: Invalid value: "0000:00:02.0": ${PLACE}`,
    ],
  },
  'eight interfaces of model e1000e': { spec: e1000e(8) },
  'nine interfaces of model e1000e': {
    spec: e1000e(9),
    want: ['devices.interfaces[8].model: Invalid value: "e1000e": a guest can have at most 8 interfaces of this model'],
  },
  'ports of an interface': {
    spec: nics([{ ...MASQUERADE, ports: [{ port: 80 }] }], [POD]),
    want: [],
  },
  'ports of an interface without masquerade': {
    spec: nics([{ name: 'default', bridge: {}, ports: [{ port: 80 }] }], [POD]),
    want: ['devices.interfaces[0].ports: Forbidden: only possible with masquerade; other guests have all their ports'],
  },
  'a MAC address with dashes, and the same with colons': {
    spec: nics(
      [
        { ...MASQUERADE, macAddress: '02-00-00-00-00-0a' },
        { name: 'b', bridge: {}, macAddress: '02:00:00:00:00:0A' },
        { name: 'c', bridge: {}, macAddress: '02-00:00-00:00-0b' },
      ],
      [POD, { name: 'b', multus: { networkName: 'br0' } }, { name: 'c', multus: { networkName: 'br0' } }],
    ),
    want: [
      `devices.interfaces[2].macAddress: Invalid value: "02-00:00-00:00-0b": ${MAC}`,
      'devices.interfaces[1].macAddress: Duplicate value: "02:00:00:00:00:0A"',
    ],
  },
  'the same PCI address twice': {
    spec: {
      ...devices({
        disks: [{ name: 'a', disk: { pciAddress: '0000:0a:00.0' } }],
        interfaces: [{ ...MASQUERADE, pciAddress: '0000:0A:00.0' }],
      }),
      volumes: [{ name: 'a', emptyDisk: { capacity: '1Gi' } }],
    },
    want: ['devices.disks[0].disk.pciAddress: Duplicate value: "0000:0a:00.0"'],
  },
  'a PCI address on sata': {
    spec: {
      ...devices({ disks: [{ name: 'a', disk: { bus: 'sata', pciAddress: '0000:05:00.0' } }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: '1Gi' } }],
    },
    want: ['devices.disks[0].disk.pciAddress: Forbidden: a PCI address is only possible for disks on the virtio bus'],
  },
};

testRules(cases);
