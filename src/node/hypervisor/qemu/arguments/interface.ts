/**
 * Arguments of a network interface. QEMU has two objects for it: the network (netdev), and the device that the guest
 * sees.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { InterfaceModel } from '#api/domain/interface.ts';
import { invariant } from '#lib/invariant.ts';
import type { InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText, type DeviceOptions } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

const DRIVERS: Record<InterfaceModel, string> = {
  virtio: 'virtio-net-pci',
  e1000e: 'e1000e',
  e1000: 'e1000',
  rtl8139: 'rtl8139',
  ne2k_pci: 'ne2k_pci',
  pcnet: 'pcnet',
};

interface NetdevOptions extends DeviceOptions {
  readonly type: 'user' | 'tap';
  readonly id: string;
}

export function interfaceArguments(nic: InterfaceDevice, chipset: Chipset, host: QemuHost): string[] {
  const { type, ...options } = interfaceNetdev(nic, (deviceId) => host.tapOf(deviceId));
  return ['-netdev', optionText(type, options), ...deviceArguments(interfaceDevice(nic, chipset))];
}

export function netdevName({ name }: InterfaceDevice): string {
  return `net-${name}`;
}

export function interfaceNetdev(nic: InterfaceDevice, tapOf: QemuHost['tapOf']): NetdevOptions {
  const id = netdevName(nic);
  if (nic.backend.type === 'user') return { type: 'user', id };
  const ifname = nic.backend.type === 'pod' ? nic.backend.tap : tapOf(nic.id);
  // The kernel would truncate a longer name and use another device.
  invariant(ifname.length > 0 && ifname.length <= 15, `${ifname} is a name of a tap device`);
  return { type: 'tap', id, ifname, script: 'no', downscript: 'no', vhost: false, ...queuesOf(nic) };
}

export function interfaceDevice(nic: InterfaceDevice, chipset: Chipset): DeviceOptions {
  return {
    driver: DRIVERS[nic.model],
    id: nic.id,
    ...pciPlace(nic, chipset),
    netdev: netdevName(nic),
    mac: nic.macAddress,
    ...multiQueue(nic),
    ...(nic.acpiIndex !== undefined && { 'acpi-index': nic.acpiIndex }),
    ...(nic.bootOrder !== undefined && { bootindex: nic.bootOrder }),
  };
}

function queuesOf({ queues }: InterfaceDevice): { queues?: number } {
  return queues === undefined ? {} : { queues };
}

/** Returns the options for several queues: two interrupt vectors per queue, one for each direction, and two more. */
function multiQueue({ queues }: InterfaceDevice): DeviceOptions {
  return queues === undefined ? {} : { mq: true, vectors: 2 * queues + 2 };
}
