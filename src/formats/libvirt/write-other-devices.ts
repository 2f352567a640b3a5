/** Writes rows other than disks and interfaces as elements of a domain; the reverse of read-other-devices.ts. */
import type { LearnedDevice, SpecParams } from '#api/devices/learned-device.ts';
import { xml, type XmlOutput } from '#lib/xml/xml-writer.ts';

type Ending = readonly (XmlOutput | undefined)[];

/** Returns undefined if libvirt cannot represent the device. `ending` is alias and address. */
export function writeOtherDevice(row: LearnedDevice, ending: Ending): XmlOutput | undefined {
  const get = (key: string) => textOf(row.specParams, key);
  const { device } = row;
  switch (row.type) {
    case 'controller':
      return controller(row, ending);
    case 'balloon':
      return xml('memballoon', { model: get('model') ?? 'virtio' }, ending);
    case 'rng':
      return xml('rng', { model: 'virtio' }, [xml('backend', { model: 'random' }, '/dev/urandom'), ...ending]);
    case 'tpm':
      return xml('tpm', { model: `tpm-${device}` }, [xml('backend', { type: 'emulator', version: '2.0' }), ...ending]);
    case 'console':
      if (device === 'serial')
        return xml('serial', { type: 'pty' }, [xml('target', { type: 'isa-serial', port: 0 }), ...ending]);
      return xml('console', { type: 'pty' }, [xml('target', { type: get('consoleType') ?? 'virtio' }), ...ending]);
    case 'video': {
      const sizes = { vram: get('vram'), ram: get('ram'), vgamem: get('vgamem'), heads: get('heads') };
      return xml('video', {}, [xml('model', { type: device, ...sizes }), ...ending]);
    }
    case 'graphics':
      return xml('graphics', { type: device, autoport: 'yes' });
    case 'sound':
      return xml('sound', { model: device }, ending);
    case 'watchdog':
      return xml('watchdog', { model: get('model') ?? 'i6300esb', action: get('action') }, ending);
    case 'channel':
      return xml('channel', { type: device }, [xml('target', { type: 'virtio', name: get('name') }), ...ending]);
    case 'input':
      return xml('input', { type: device, bus: get('bus') ?? 'usb' }, ending);
    case 'redir':
      return xml('redirdev', { bus: 'usb', type: 'spicevmc' }, ending);
    default:
      return undefined;
  }
}

/** Writes no alias for USB controllers, because libvirt derives the bus of USB devices from its own alias. */
function controller({ id, device, specParams }: LearnedDevice, ending: Ending): XmlOutput {
  const [, number] = /([0-9]{1,3})$/.exec(id) ?? [];
  const index = textOf(specParams, 'index');
  const model = textOf(specParams, 'model');
  if (device === 'pcie-root-port') {
    return xml('controller', { type: 'pci', index: index ?? Number(number ?? 0) + 1, model: device }, ending);
  }
  if (device === 'virtio-scsi')
    return xml('controller', { type: 'scsi', index: index ?? number ?? 0, model: device }, ending);
  const parts = device === 'usb' ? ending.filter((part) => part?.name !== 'alias') : ending;
  return xml('controller', { type: device, index: index ?? number ?? 0, model }, parts);
}

function textOf(specParams: SpecParams | undefined, key: string): string | undefined {
  const value = specParams !== undefined && Object.hasOwn(specParams, key) ? specParams[key] : undefined;
  return typeof value === 'string' ? value : undefined;
}
