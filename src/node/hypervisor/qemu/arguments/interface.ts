import { invariant } from '#lib/invariant.ts';
import type { InterfaceDevice } from '#node/definition/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

const DRIVERS = { virtio: 'virtio-net-pci', e1000e: 'e1000e' } as const;

export function interfaceArguments(nic: InterfaceDevice, host: QemuHost): string[] {
  const netdev = `net-${nic.name}`;
  return [
    '-netdev',
    netdevOf(nic, netdev, host),
    ...deviceArguments({
      driver: DRIVERS[nic.model],
      id: nic.id,
      ...pciPlace(nic),
      netdev,
      mac: nic.macAddress,
      ...(nic.bootOrder !== undefined && { bootindex: nic.bootOrder }),
    }),
  ];
}

function netdevOf({ id: deviceId, backend }: InterfaceDevice, id: string, host: QemuHost): string {
  if (backend.type === 'user') return optionText('user', { id });
  const ifname = host.tapOf(deviceId);
  // Longer names would be cut by the kernel, and another device be taken.
  invariant(ifname.length > 0 && ifname.length <= 15, `${ifname} is a name of a tap device`);
  return optionText('tap', { id, ifname, script: 'no', downscript: 'no', vhost: false });
}
