/** Converts the devices of a definition to learned devices: the report of a hypervisor that follows the definition. */
import { AGENT_PORT_NAME } from '#api/devices/agent-channel.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Device, DomainDefinition } from '#node/hardware/domain-definition.ts';

export function toLearnedDevices({ devices }: DomainDefinition): LearnedDevice[] {
  return devices.map((device) => ({
    id: device.id,
    ...describeDevice(device),
    ...(device.address !== undefined && { address: { ...device.address } }),
  }));
}

type DeviceDescription = Omit<LearnedDevice, 'id' | 'address'>;

function describeDevice(device: Device): DeviceDescription {
  switch (device.type) {
    case 'root-port':
      return { type: 'controller', device: 'pcie-root-port', managed: false };
    case 'scsi-controller':
      return { type: 'controller', device: 'virtio-scsi', managed: false };
    case 'disk':
      return {
        type: 'disk',
        device: device.media,
        ...nameFields(device),
        managed: true,
        ...(device.readonly && { readonly: true }),
        // The drive address does not contain the controller.
        specParams: { bus: device.bus },
      };
    case 'interface':
      return { type: 'interface', device: device.model, ...nameFields(device), managed: true };
    case 'tpm':
      return { type: 'tpm', device: device.model, managed: true };
    case 'rng':
      return { type: 'rng', device: 'virtio', managed: true };
    case 'balloon':
      return { type: 'balloon', device: 'memballoon', managed: true };
    case 'serial':
      return { type: 'console', device: 'serial', managed: true };
    case 'video':
      return { type: 'video', device: device.model, managed: true };
    case 'agent-channel':
      return { type: 'channel', device: 'unix', managed: false, specParams: { name: AGENT_PORT_NAME } };
    case 'usb-controller':
      return { type: 'controller', device: 'usb', managed: false, specParams: { model: 'qemu-xhci' } };
    case 'input':
      return { type: 'input', device: 'tablet', name: device.name, managed: true, specParams: { bus: device.bus } };
    case 'sound':
      return { type: 'sound', device: device.model, name: device.name, managed: true };
    case 'watchdog':
      return {
        ...{ type: 'watchdog', device: 'i6300esb', name: device.name, managed: true },
        specParams: { action: device.action },
      };
    case 'redirection':
      return { type: 'redir', device: 'usbredir', managed: true };
    case 'other':
      return { ...device.row };
    default:
      return unreachable(device);
  }
}

function nameFields({
  name,
  bootOrder,
}: {
  name: string;
  bootOrder?: number;
}): Pick<DeviceDescription, 'name' | 'bootOrder'> {
  return bootOrder === undefined ? { name } : { name, bootOrder };
}
