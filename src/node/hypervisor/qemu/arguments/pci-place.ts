/** The place of a PCI device for QEMU: on the root bus, or in the port behind which the guest sees it. */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import { invariant } from '#lib/invariant.ts';
import { portOf } from '#api/devices/root-ports.ts';
import { pciAddressFromMap } from '#api/devices/pci-address.ts';

const ROOT_BUS = { q35: 'pcie.0', i440fx: 'pci.0' } as const;

export function pciPlace(
  device: { readonly id: string; readonly address?: DeviceAddress },
  chipset: Chipset,
): { bus: string; addr: string } {
  const address = device.address && pciAddressFromMap(device.address);
  invariant(address !== undefined, `${device.id} has a PCI address`);
  const addr = `0x${address.slot.toString(16)}.0x${address.function.toString(16)}`;
  if (address.bus === 0) return { bus: ROOT_BUS[chipset], addr };
  const port = chipset === 'q35' ? portOf(address) : undefined;
  // QEMU accepts other slots behind a port without an error, but guests never see a device there.
  invariant(port !== undefined, `${device.id} is behind a root port`);
  return { bus: `rp${port}`, addr };
}
