/** Writes and reads the labels of the VM and of its instances: elements of our own namespace. */
import type { Findings } from '#formats/findings.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { OWN } from '#formats/ovf/vocabulary.ts';
import { attributeOf, childrenNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';
import { xml, type XmlOutput } from '#lib/xml/xml-writer.ts';

/** The value of `selfsame:of` for the labels of instances. */
const TEMPLATE = 'template';

type Labels = Pick<MachineDescription, 'labels' | 'templateLabels'>;

export function labelElements({ labels, templateLabels }: Labels): XmlOutput[] {
  return [...listElements(labels), ...listElements(templateLabels, TEMPLATE)];
}

function listElements(labels: Readonly<Record<string, string>> = {}, of?: string): XmlOutput[] {
  return Object.entries(labels).map(([key, value]) =>
    xml('selfsame:Label', { 'selfsame:of': of, 'selfsame:key': key, 'selfsame:value': value }),
  );
}

/** Reads the labels. checkDescription checks their keys and values. */
export function readLabels(system: XmlElement, findings: Findings): Labels {
  const [own, ofTemplate] = [new Map<string, string>(), new Map<string, string>()];
  for (const element of childrenNamed(system, 'Label', OWN)) {
    const labels = attributeOf(element, 'of', OWN) === TEMPLATE ? ofTemplate : own;
    const key = attributeOf(element, 'key', OWN) ?? '';
    if (labels.has(key)) findings.addError(`the label ${quoteText(key)} appears twice`);
    labels.set(key, attributeOf(element, 'value', OWN) ?? '');
  }
  return {
    ...(own.size > 0 && { labels: Object.fromEntries(own) }),
    ...(ofTemplate.size > 0 && { templateLabels: Object.fromEntries(ofTemplate) }),
  };
}
