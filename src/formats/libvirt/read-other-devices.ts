/** Reads the devices of a domain that are neither disks nor interfaces. */
import type { SpecParams } from '#api/devices/learned-device.ts';
import type { ForeignDevice } from '#formats/device-rows.ts';
import type { Findings } from '#formats/findings.ts';
import { readElementAddress, readOwnId } from '#formats/libvirt/element-parts.ts';
import { attributeOf, childNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';

type DeviceKind = Pick<ForeignDevice, 'type' | 'device' | 'managed' | 'specParams'>;

/** Returns undefined if the element is not a separate device, or is not imported, with a note. */
export function readOtherDevice(
  element: XmlElement,
  hasSerial: boolean,
  findings: Findings,
): ForeignDevice | undefined {
  const kind = readKind(element, hasSerial, findings);
  if (kind === undefined) return undefined;
  const address = readElementAddress(element);
  return { ...kind, id: readOwnId(element), ...(address !== undefined && { address }) };
}

function readKind(element: XmlElement, hasSerial: boolean, findings: Findings): DeviceKind | undefined {
  const type = attributeOf(element, 'type') ?? '';
  const model = attributeOf(element, 'model');
  switch (element.name) {
    case 'emulator':
      return undefined;
    case 'controller':
      // The root of the bus is part of the machine.
      if (model === 'pci-root' || model === 'pcie-root') return undefined;
      // The domain has no USB controller.
      if (type === 'usb' && model === 'none') return undefined;
      return {
        type: 'controller',
        device: type,
        managed: false,
        specParams: definedTexts({ index: attributeOf(element, 'index'), model }),
      };
    case 'memballoon':
      return model === 'none'
        ? undefined
        : { type: 'balloon', device: 'memballoon', managed: true, specParams: definedTexts({ model }) };
    case 'rng':
      return { type: 'rng', device: 'virtio', managed: true };
    case 'tpm':
      return readTpm(element, model, findings);
    case 'serial':
      return { type: 'console', device: 'serial', managed: true };
    case 'console':
      return readConsole(element, hasSerial);
    case 'video':
      return readVideo(element);
    case 'graphics':
      return { type: 'graphics', device: type || 'vnc', managed: false };
    case 'sound':
      return { type: 'sound', device: model ?? 'ich6', managed: false };
    case 'watchdog':
      return {
        type: 'watchdog',
        device: 'watchdog',
        managed: false,
        specParams: definedTexts({ model, action: attributeOf(element, 'action') }),
      };
    case 'channel':
      return {
        type: 'channel',
        device: type || 'unix',
        managed: false,
        specParams: definedTexts({ name: attributeOf(childNamed(element, 'target'), 'name') }),
      };
    case 'input':
      // Every PC has a PS/2 mouse and keyboard.
      return attributeOf(element, 'bus') === 'ps2'
        ? undefined
        : {
            ...{ type: 'input', device: type || 'tablet', managed: false },
            specParams: definedTexts({ bus: attributeOf(element, 'bus') }),
          };
    case 'redirdev':
      return { type: 'redir', device: type || 'spicevmc', managed: false };
    default:
      return readUnknown(element, type, findings);
  }
}

function definedTexts(values: Readonly<Record<string, string | undefined>>): SpecParams {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}

function readTpm(element: XmlElement, model: string | undefined, findings: Findings): DeviceKind {
  const backend = attributeOf(childNamed(element, 'backend'), 'type');
  if (backend === 'passthrough')
    findings.addNote('the TPM of the host is replaced with an emulated one, without its content');
  return { type: 'tpm', device: model === 'tpm-tis' ? 'tis' : 'crb', managed: true };
}

/** Returns undefined for a serial console if there is a serial port, because it is that port. */
function readConsole(element: XmlElement, hasSerial: boolean): DeviceKind | undefined {
  const target = attributeOf(childNamed(element, 'target'), 'type') ?? 'serial';
  if (target !== 'serial')
    return { type: 'console', device: 'console', managed: true, specParams: definedTexts({ consoleType: target }) };
  return hasSerial ? undefined : { type: 'console', device: 'serial', managed: true };
}

function readVideo(element: XmlElement): DeviceKind | undefined {
  const model = childNamed(element, 'model');
  const device = attributeOf(model, 'type') ?? 'vga';
  if (device === 'none') return undefined;
  const specParams = definedTexts({
    vram: attributeOf(model, 'vram'),
    ram: attributeOf(model, 'ram'),
    vgamem: attributeOf(model, 'vgamem'),
    heads: attributeOf(model, 'heads'),
  });
  return { type: 'video', device, managed: false, specParams };
}

/** Returns a row for an unknown device if it has an address. */
function readUnknown(element: XmlElement, type: string, findings: Findings): DeviceKind | undefined {
  findings.addNote(
    `the device ${quoteText(`${element.name} ${type}`.trim())} is unknown; ${readElementAddress(element) === undefined ? 'it is not imported' : 'only its address is kept'}`,
  );
  if (readElementAddress(element) === undefined) return undefined;
  return { type: element.name, device: type || element.name, managed: false };
}
