/**
 * Reads and writes SpecParams as elements: a text is a value, children are a nested map. Keys that are not valid names
 * of elements, and empty maps, are written as elements of our own namespace, so that nothing is lost.
 */
import type { SpecParams } from '#api/devices/learned-device.ts';
import { OWN } from '#formats/ovf/vocabulary.ts';
import { attributeOf, type XmlElement } from '#lib/xml/xml.ts';
import { isXmlName, xml, type XmlOutput } from '#lib/xml/xml-writer.ts';

/** Returns undefined if a key is repeated. */
export function readSpecParams(element: XmlElement | undefined): SpecParams | undefined {
  const entries: [string, string | SpecParams][] = [];
  for (const child of element?.children ?? []) {
    const isOwn = child.namespace === OWN && child.name === 'Entry';
    const isMap = child.children.length > 0 || (isOwn && attributeOf(child, 'map') === 'true');
    const value = isMap ? readSpecParams(child) : child.text;
    if (value === undefined) return undefined;
    entries.push([isOwn ? (attributeOf(child, 'key') ?? '') : child.name, value]);
  }
  const keys = new Set(entries.map(([key]) => key));
  return keys.size === entries.length && !keys.has('__proto__') ? Object.fromEntries(entries) : undefined;
}

export function printSpecParams(name: string, params: SpecParams | undefined): XmlOutput | undefined {
  if (params === undefined || Object.keys(params).length === 0) return undefined;
  return xml(name, {}, Object.entries(params).map(printEntry));
}

function printEntry([key, value]: [string, string | SpecParams]): XmlOutput {
  const isText = typeof value === 'string';
  const content = isText ? value : Object.entries(value).map(printEntry);
  const isEmptyMap = !isText && content.length === 0;
  if (isXmlName(key) && !isEmptyMap) return xml(key, {}, content);
  return xml('selfsame:Entry', { key, map: isText ? undefined : true }, content);
}
