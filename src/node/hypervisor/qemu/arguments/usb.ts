/** Arguments of the USB controller and of the devices on its ports. */
import type { Chipset } from '#api/devices/chipset.ts';
import { USB_ID } from '#api/devices/fixed-devices.ts';
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import { invariant } from '#lib/invariant.ts';
import { usbPortOf, USB_PORTS } from '#node/hardware/drive-address.ts';
import type { InputDevice, RedirectionDevice, UsbController } from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText, type DeviceOptions } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

export function usbControllerArguments(controller: UsbController, chipset: Chipset): string[] {
  const ports = { p2: USB_PORTS, p3: USB_PORTS };
  return deviceArguments({ driver: 'qemu-xhci', id: controller.id, ...pciPlace(controller, chipset), ...ports });
}

export function inputArguments(input: InputDevice, chipset: Chipset): string[] {
  const { id, bus } = input;
  if (bus === 'virtio') return deviceArguments({ driver: 'virtio-tablet-pci', id, ...pciPlace(input, chipset) });
  return deviceArguments({ driver: 'usb-tablet', id, ...usbPlace(input) });
}

/** Arguments of a USB redirection slot, which is empty until a client connects to its socket. */
export function redirectionArguments(slot: RedirectionDevice, { redirectionSocket }: QemuHost): string[] {
  const chardev = `chr-${slot.id}`;
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: redirectionSocket(slot.id), server: true, wait: false }),
    ...deviceArguments({ driver: 'usb-redir', id: slot.id, ...usbPlace(slot), chardev }),
  ];
}

type UsbDevice = { readonly id: string; readonly address?: DeviceAddress };

function usbPlace(device: UsbDevice): DeviceOptions {
  return { bus: `${USB_ID}.0`, port: String(usbPort(device)) };
}

export function usbPort({ id, address }: UsbDevice): number {
  const port = address && usbPortOf(address);
  invariant(port !== undefined, `${id} has a USB port`);
  return port;
}
