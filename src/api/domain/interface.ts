import { acpiIndex } from '#api/domain/hardware.ts';
import { int32, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

export const INTERFACE_MODELS = ['virtio', 'e1000e', 'e1000', 'rtl8139', 'ne2k_pci', 'pcnet'] as const;
/**
 * Conventional PCI models, which cannot be plugged into PCI Express root ports. On q35 they are on the root bus and
 * cannot be hotplugged.
 */
const CONVENTIONAL_MODELS: ReadonlySet<string> = new Set(['e1000', 'rtl8139', 'ne2k_pci', 'pcnet']);

export function isConventional(model: string): boolean {
  return CONVENTIONAL_MODELS.has(model);
}

export const networkInterface = obj(
  {
    name: str({ minLength: 1, maxLength: 63, description: 'The name of the network of the interface.' }),
    model: oneOf(INTERFACE_MODELS, { description: 'Defaults to virtio.' }),
    macAddress: str({
      description:
        'The MAC address, for example de:ad:00:00:be:ef. If unset, one is derived at the first start and kept.',
    }),
    bootOrder: int32({ minimum: 1 }),
    acpiIndex,
    state: oneOf(['up', 'down', 'absent'], {
      description:
        'down: the guest sees no link. absent: the interface is unplugged; its MAC and PCI address are kept. Both can be set while the guest runs.',
    }),
    pciAddress: str({ description: 'The PCI address of the interface in the guest, for example 0000:01:00.0.' }),
    ports: list(
      obj(
        { name: str(), protocol: oneOf(['TCP', 'UDP']), port: int32({ minimum: 1, maximum: 65_535 }) },
        { required: ['port'] },
      ),
      {
        description: 'The ports of the guest that can be reached from outside. If unset, all can. Requires masquerade.',
      },
    ),
    masquerade: obj(
      {},
      {
        description:
          'The guest has an address of a private network, 10.0.2.2 by default, which is translated to the address of the pod. Requires the pod network.',
      },
    ),
    bridge: obj({}, { description: 'The guest has the address of the pod, and its own MAC address on the network.' }),
  },
  { required: ['name'] },
);

export const network = obj(
  {
    name: str({ minLength: 1, maxLength: 63 }),
    pod: obj(
      {
        vmNetworkCIDR: str({
          description: 'The private IPv4 network of a guest with masquerade. Defaults to 10.0.2.0/24.',
        }),
        vmIPv6NetworkCIDR: str({
          description: 'The private IPv6 network of a guest with masquerade. Defaults to fd10:0:2::/120.',
        }),
      },
      { description: 'The default network, which connects all guests.' },
    ),
    multus: obj(
      {
        networkName: str({
          minLength: 1,
          maxLength: 317,
          description:
            'The name of a NetworkAttachmentDefinition in the namespace of the VM or in "default", or <namespace>/<name>.',
        }),
      },
      { required: ['networkName'] },
    ),
  },
  { required: ['name'] },
);

export type Interface = Infer<typeof networkInterface>;
export type Network = Infer<typeof network>;
export type InterfaceModel = (typeof INTERFACE_MODELS)[number];
