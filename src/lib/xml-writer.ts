/** XML out: elements as values, printed with everything escaped. Names are our own; values may be anything. Pure. */
import { invariant } from '#lib/invariant.ts';
import { NOT_A_CHARACTER } from '#lib/xml-scan.ts';

export interface XmlOutput {
  /** With its prefix; the root declares it. */
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** A text stands alone: there is no mixed content. */
  readonly content: string | readonly XmlOutput[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*(?::[A-Za-z_][A-Za-z0-9_.-]*)?$/;
const LOCAL_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** Whether a key can be the name of an element. Names that begin with `xml` are the standard's own. */
export function isXmlName(text: string): boolean {
  return LOCAL_NAME.test(text) && !/^xml/i.test(text);
}

/** Attributes that are undefined, and children that are, are left out. */
export function xml(
  name: string,
  attributes: Readonly<Record<string, string | number | boolean | undefined>> = {},
  content: string | readonly (XmlOutput | undefined)[] = [],
): XmlOutput {
  const given = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : ([[key, String(value)]] as const),
  );
  return {
    name,
    attributes: Object.fromEntries(given),
    content: typeof content === 'string' ? content : content.filter((child) => child !== undefined),
  };
}

/** `<name>text</name>`; nothing where there is no text. */
export function leaf(name: string, text: string | number | boolean | undefined): XmlOutput | undefined {
  return text === undefined ? undefined : xml(name, {}, String(text));
}

/** The whole document. Throws for characters that XML cannot hold, however they are written. */
export function printXml(root: XmlOutput): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${print(root, '')}`;
}

function print({ name, attributes, content }: XmlOutput, indent: string): string {
  invariant(NAME.test(name), `"${name}" is the name of an element`);
  const tag = Object.entries(attributes).reduce((text, [key, value]) => {
    invariant(NAME.test(key), `"${key}" is the name of an attribute`);
    return `${text} ${key}="${escaped(value).replaceAll('\t', '&#9;').replaceAll('\n', '&#10;')}"`;
  }, `${indent}<${name}`);
  if (content.length === 0) return `${tag}/>\n`;
  if (typeof content === 'string') return `${tag}>${escaped(content)}</${name}>\n`;
  return `${tag}>\n${content.map((child) => print(child, `${indent}  `)).join('')}${indent}</${name}>\n`;
}

function escaped(text: string): string {
  if (NOT_A_CHARACTER.test(text)) {
    throw new TypeError(
      `Cannot write ${JSON.stringify(text.slice(0, 80))} as XML: it has a character without a place there`,
    );
  }
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&apos;')
    .replaceAll('\r', '&#13;');
}
