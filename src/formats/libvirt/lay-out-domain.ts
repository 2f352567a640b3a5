/**
 * Assigns the addresses that libvirt would assign to devices of a domain without one. A domain without any address was
 * never defined in libvirt, so it also gets the devices that libvirt adds by default. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import { targetIndex } from '#api/libvirt-layout/drive-units.ts';
import type { Findings } from '#formats/findings.ts';
import { hasAddresses, layOutImported } from '#formats/lay-out-imported.ts';
import type { DomainDisk } from '#formats/libvirt/read-disk.ts';
import type { MachineDescription, DescribedNic } from '#formats/machine.ts';
import { attributeOf, childNamed, type XmlElement } from '#lib/xml/xml.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

interface DomainParts {
  readonly elements: readonly XmlElement[];
  readonly disks: readonly DomainDisk[];
  readonly nics: readonly DomainNic[];
  readonly chipset: Chipset | undefined;
}

export function layOutDomain(
  devices: Devices,
  { elements, disks, nics, chipset }: DomainParts,
  findings: Findings,
): Devices {
  const targets = new Map(
    disks.flatMap(({ disk, element }) => {
      const index = targetIndex(attributeOf(childNamed(element, 'target'), 'dev') ?? '');
      return index === undefined ? [] : [[disk.id, index] as const];
    }),
  );
  const models = new Map(nics.map(({ nic, model }) => [nic.id, model]));
  const hasElement = (name: string, type?: string) =>
    elements.some((element) => element.name === name && (type === undefined || attributeOf(element, 'type') === type));
  const defaults = { balloon: !hasElement('memballoon'), usb: !hasElement('controller', 'usb') };
  const isNew = !hasAddresses(devices);
  return layOutImported(devices, { chipset, targets, models, ...(isNew && { defaults }) }, findings);
}

export interface DomainNic {
  readonly nic: DescribedNic;
  readonly element: XmlElement;
  /** The model in the domain. */
  readonly model: string;
  readonly keepsAddress: boolean;
}
