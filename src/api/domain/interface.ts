import { acpiIndex } from '#api/domain/hardware.ts';
import { int32, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

export const INTERFACE_MODELS = ['virtio', 'e1000e', 'e1000', 'rtl8139', 'ne2k_pci', 'pcnet'] as const;
/**
 * Of conventional PCI: they have no place behind the ports of PCI Express. On q35 they stand on the root bus, and can
 * only be there from the start.
 */
const CONVENTIONAL_MODELS: ReadonlySet<string> = new Set(['e1000', 'rtl8139', 'ne2k_pci', 'pcnet']);

export function isConventional(model: string): boolean {
  return CONVENTIONAL_MODELS.has(model);
}

export const networkInterface = obj(
  {
    name: str({ minLength: 1, maxLength: 63, description: 'The name of the network that it is plugged into.' }),
    model: oneOf(INTERFACE_MODELS, { description: 'virtio unless set.' }),
    macAddress: str({ description: 'de:ad:00:00:be:ef. Made once and kept where it is not set.' }),
    bootOrder: int32({ minimum: 1 }),
    acpiIndex,
    state: oneOf(['up', 'down', 'absent'], {
      description:
        'down: the guest sees no link, as with a cable that is pulled; also while it runs. absent: unplugged, also while the guest runs; its MAC and PCI address are kept for its return.',
    }),
    pciAddress: str({ description: 'Where the guest sees it, 0000:01:00.0.' }),
    ports: list(
      obj(
        { name: str(), protocol: oneOf(['TCP', 'UDP']), port: int32({ minimum: 1, maximum: 65_535 }) },
        { required: ['port'] },
      ),
    ),
    masquerade: obj({}, { description: 'User-mode networking; with the pod network.' }),
    bridge: obj({}, { description: 'A port of a bridge of the node; with a multus network that names the bridge.' }),
  },
  { required: ['name'] },
);

export const network = obj(
  {
    name: str({ minLength: 1, maxLength: 63 }),
    pod: obj({}, { description: 'The network of the node, behind user-mode networking.' }),
    multus: obj(
      { networkName: str({ minLength: 1, maxLength: 15, description: 'A bridge that exists on the node.' }) },
      { required: ['networkName'] },
    ),
  },
  { required: ['name'] },
);

export type Interface = Infer<typeof networkInterface>;
export type Network = Infer<typeof network>;
export type InterfaceModel = (typeof INTERFACE_MODELS)[number];
