/**
 * Builds QEMU's command line from a definition. Pure. Every device has an explicit id, bus and
 * address, so that QEMU chooses nothing. start.ts runs the command.
 */
import { chipsetOf, type Chipset } from '#api/devices/chipset.ts';
import { invariant, unreachable } from '#lib/invariant.ts';
import { hasDisplay, type Device, type DomainDefinition } from '#node/hardware/domain-definition.ts';
import { diskArguments } from '#node/hypervisor/qemu/arguments/disk.ts';
import { interfaceArguments } from '#node/hypervisor/qemu/arguments/interface.ts';
import { machineArguments } from '#node/hypervisor/qemu/arguments/machine.ts';
import { optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';
import {
  agentChannelArguments,
  balloonArguments,
  otherArguments,
  rngArguments,
  rootPortArguments,
  scsiControllerArguments,
  serialArguments,
  soundArguments,
  tpmArguments,
  videoArguments,
  watchdogArguments,
} from '#node/hypervisor/qemu/arguments/simple-devices.ts';
import { clockArguments } from '#node/hypervisor/qemu/arguments/clock.ts';
import { inputArguments, redirectionArguments, usbControllerArguments } from '#node/hypervisor/qemu/arguments/usb.ts';

/**
 * Builds the arguments. The guest does not run until it is started (-S), and QEMU stays after a shutdown, so that its
 * state can be read.
 */
export function qemuArguments(definition: DomainDefinition, host: QemuHost): string[] {
  const chipset = requireChipset(definition);
  return [
    '-name',
    optionText('', { guest: definition.name }),
    '-S',
    '-no-shutdown',
    '-no-user-config',
    '-nodefaults',
    '-sandbox',
    'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
    '-display',
    'none',
    ...machineArguments(definition, host),
    ...clockArguments(definition.clock, host),
    // Boot only from devices with a boot order.
    '-boot',
    'strict=on',
    '-chardev',
    optionText('socket', { id: 'qmp', path: host.qmpSocket, server: true, wait: false }),
    '-mon',
    'chardev=qmp,mode=control',
    ...(hasDisplay(definition) ? ['-vnc', vncOption(host.displaySocket)] : []),
    ...definition.devices.flatMap((device) => argumentsOf(device, chipset, host)),
  ];
}

/**
 * Returns the option of the VNC server. Only the node agent can open the socket, and it authenticates the users. Viewers
 * that ask for an exclusive session, as most do, get a shared one: `force-shared` would disconnect them.
 */
function vncOption(socket: string): string {
  return optionText(`unix:${socket}`, { share: 'ignore' });
}

/** Returns the chipset, which decides on which bus a device is. Throws for an unknown machine type. */
export function requireChipset({ machine }: Pick<DomainDefinition, 'machine'>): Chipset {
  const chipset = chipsetOf(machine);
  invariant(chipset !== undefined, `${machine} has a chipset that we know`);
  return chipset;
}

function argumentsOf(device: Device, chipset: Chipset, host: QemuHost): string[] {
  switch (device.type) {
    case 'root-port':
      return rootPortArguments(device);
    case 'scsi-controller':
      return scsiControllerArguments(device, chipset);
    case 'disk':
      return diskArguments(device, chipset, host);
    case 'interface':
      return interfaceArguments(device, chipset, host);
    case 'tpm':
      return tpmArguments(device, host);
    case 'rng':
      return rngArguments(device, chipset);
    case 'balloon':
      return balloonArguments(device, chipset);
    case 'serial':
      return serialArguments(device, host);
    case 'video':
      return videoArguments(device, chipset);
    case 'agent-channel':
      return agentChannelArguments(device, host);
    case 'usb-controller':
      return usbControllerArguments(device, chipset);
    case 'input':
      return inputArguments(device, chipset);
    case 'redirection':
      return redirectionArguments(device, host);
    case 'sound':
      return soundArguments(device, chipset);
    case 'watchdog':
      return watchdogArguments(device, chipset);
    case 'other':
      return otherArguments(device, chipset);
    default:
      return unreachable(device);
  }
}
