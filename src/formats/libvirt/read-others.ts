/** Devices of a domain that are neither disk nor interface, as rows: one line per kind of element. */
import type { SpecParams } from '#api/learned-device.ts';
import type { ForeignDevice } from '#formats/device-rows.ts';
import { quoted, type Findings } from '#formats/faults.ts';
import { addressOf, ownId } from '#formats/libvirt/element-parts.ts';
import { attributeOf, childNamed, type XmlElement } from '#lib/xml.ts';

type Kind = Pick<ForeignDevice, 'type' | 'device' | 'managed' | 'specParams'>;

/** Undefined for what is no device of its own, or is not taken over; the notes say so. */
export function otherDevice(element: XmlElement, hasSerial: boolean, findings: Findings): ForeignDevice | undefined {
  const kind = kindOf(element, hasSerial, findings);
  if (kind === undefined) return undefined;
  const address = addressOf(element);
  return { ...kind, id: ownId(element), ...(address !== undefined && { address }) };
}

function kindOf(element: XmlElement, hasSerial: boolean, findings: Findings): Kind | undefined {
  const type = attributeOf(element, 'type') ?? '';
  const model = attributeOf(element, 'model');
  switch (element.name) {
    case 'emulator':
      return undefined;
    case 'controller':
      // The root of the bus is the machine itself.
      if (model === 'pci-root' || model === 'pcie-root') return undefined;
      // The domain says that it has none.
      if (type === 'usb' && model === 'none') return undefined;
      return {
        type: 'controller',
        device: type,
        managed: false,
        specParams: texts({ index: attributeOf(element, 'index'), model }),
      };
    case 'memballoon':
      return model === 'none'
        ? undefined
        : { type: 'balloon', device: 'memballoon', managed: true, specParams: texts({ model }) };
    case 'rng':
      return { type: 'rng', device: 'virtio', managed: true };
    case 'tpm':
      return tpmOf(element, model, findings);
    case 'serial':
      return { type: 'console', device: 'serial', managed: true };
    case 'console':
      return consoleOf(element, hasSerial);
    case 'video':
      return videoOf(element);
    case 'graphics':
      return { type: 'graphics', device: type || 'vnc', managed: false };
    case 'sound':
      return { type: 'sound', device: model ?? 'ich6', managed: false };
    case 'watchdog':
      return {
        type: 'watchdog',
        device: 'watchdog',
        managed: false,
        specParams: texts({ model, action: attributeOf(element, 'action') }),
      };
    case 'channel':
      return {
        type: 'channel',
        device: type || 'unix',
        managed: false,
        specParams: texts({ name: attributeOf(childNamed(element, 'target'), 'name') }),
      };
    case 'input':
      // Every PC has these two.
      return attributeOf(element, 'bus') === 'ps2'
        ? undefined
        : {
            ...{ type: 'input', device: type || 'tablet', managed: false },
            specParams: texts({ bus: attributeOf(element, 'bus') }),
          };
    case 'redirdev':
      return { type: 'redir', device: type || 'spicevmc', managed: false };
    default:
      return unknownOf(element, type, findings);
  }
}

function texts(values: Readonly<Record<string, string | undefined>>): SpecParams {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}

function tpmOf(element: XmlElement, model: string | undefined, findings: Findings): Kind {
  const backend = attributeOf(childNamed(element, 'backend'), 'type');
  if (backend === 'passthrough')
    findings.note('the TPM was one of the host; here it is an emulated one, without its content');
  return { type: 'tpm', device: model === 'tpm-tis' ? 'tis' : 'crb', managed: true };
}

/** The first console of a guest with a serial port is that port. */
function consoleOf(element: XmlElement, hasSerial: boolean): Kind | undefined {
  const target = attributeOf(childNamed(element, 'target'), 'type') ?? 'serial';
  if (target !== 'serial')
    return { type: 'console', device: 'console', managed: true, specParams: texts({ consoleType: target }) };
  return hasSerial ? undefined : { type: 'console', device: 'serial', managed: true };
}

function videoOf(element: XmlElement): Kind | undefined {
  const model = childNamed(element, 'model');
  const device = attributeOf(model, 'type') ?? 'vga';
  if (device === 'none') return undefined;
  const specParams = texts({
    vram: attributeOf(model, 'vram'),
    ram: attributeOf(model, 'ram'),
    vgamem: attributeOf(model, 'vgamem'),
    heads: attributeOf(model, 'heads'),
  });
  return { type: 'video', device, managed: false, specParams };
}

/** What has a place in the guest is kept as a row, known or not. */
function unknownOf(element: XmlElement, type: string, findings: Findings): Kind | undefined {
  findings.note(
    `the device ${quoted(`${element.name} ${type}`.trim())} is not known; ${addressOf(element) === undefined ? 'it is not taken over' : 'only its address is kept'}`,
  );
  if (addressOf(element) === undefined) return undefined;
  return { type: element.name, device: type || element.name, managed: false };
}
