/**
 * Writes and reads the cloud-init data of disks: elements of our own namespace, with the data in base64, because XML
 * cannot represent every text.
 */
import type { Findings } from '#formats/findings.ts';
import type { CloudInitPart, DescribedDisk, MachineDescription } from '#formats/machine.ts';
import { OWN } from '#formats/ovf/vocabulary.ts';
import { attributeOf, childrenNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';
import { xml, type XmlOutput } from '#lib/xml/xml-writer.ts';

export function cloudInitElements({ disks }: MachineDescription): XmlOutput[] {
  return disks.flatMap(({ name, cloudInit }) => {
    if (cloudInit === undefined) return [];
    const { userData, networkData } = cloudInit;
    const parts = [partElement('UserData', userData), partElement('NetworkData', networkData)];
    return [xml('selfsame:CloudInit', { 'selfsame:disk': name }, parts)];
  });
}

function partElement(name: string, part: CloudInitPart | undefined): XmlOutput | undefined {
  if (part === undefined) return undefined;
  const { base64, secret } = part;
  return xml(
    `selfsame:${name}`,
    { 'selfsame:secret': secret, 'selfsame:included': base64 === undefined ? false : undefined },
    base64 ?? '',
  );
}

/** Returns the disks with their cloud-init data. checkDescription checks the data itself. */
export function addCloudInit(
  disks: readonly DescribedDisk[],
  system: XmlElement,
  findings: Findings,
): readonly DescribedDisk[] {
  const byDisk = new Map<string, XmlElement>();
  const known = new Set(disks.map(({ name }) => name));
  for (const element of childrenNamed(system, 'CloudInit', OWN)) {
    const disk = attributeOf(element, 'disk', OWN) ?? '';
    if (!known.has(disk)) findings.addError(`there is cloud-init data for the unknown disk ${quoteText(disk)}`);
    if (byDisk.has(disk)) findings.addError(`the cloud-init data of the disk ${quoteText(disk)} appears twice`);
    byDisk.set(disk, element);
  }
  return disks.map((disk) => {
    const element = byDisk.get(disk.name);
    if (element === undefined) return disk;
    const userData = readPart(element, 'UserData', disk, findings);
    const networkData = readPart(element, 'NetworkData', disk, findings);
    return { ...disk, cloudInit: { ...(userData && { userData }), ...(networkData && { networkData }) } };
  });
}

function readPart(
  element: XmlElement,
  name: string,
  disk: DescribedDisk,
  findings: Findings,
): CloudInitPart | undefined {
  const [part, ...others] = childrenNamed(element, name, OWN);
  if (others.length > 0) findings.addError(`${name} of the disk ${quoteText(disk.name)} appears twice`);
  if (part === undefined) return undefined;
  const secret = attributeOf(part, 'secret', OWN);
  const isIncluded = attributeOf(part, 'included', OWN) !== 'false';
  return {
    ...(isIncluded && { base64: part.text.replaceAll(/\s/g, '') }),
    ...(secret !== undefined && { secret }),
  };
}
