/**
 * Writes XML: elements as values, printed with all values escaped. Names must be valid; values may be any text. Pure.
 */
import { invariant } from '#lib/invariant.ts';
import { ILLEGAL_CHARACTER } from '#lib/xml/xml-scan.ts';

export interface XmlOutput {
  /** The name with its prefix, which the root declares. */
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** A text or child elements; mixed content is not supported. */
  readonly content: string | readonly XmlOutput[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*(?::[A-Za-z_][A-Za-z0-9_.-]*)?$/;
const LOCAL_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** Reports whether the text can be the name of an element. XML reserves names that begin with `xml`. */
export function isXmlName(text: string): boolean {
  return LOCAL_NAME.test(text) && !/^xml/i.test(text);
}

/** Returns an element. Leaves out undefined attributes and children. */
export function xml(
  name: string,
  attributes: Readonly<Record<string, string | number | boolean | undefined>> = {},
  content: string | readonly (XmlOutput | undefined)[] = [],
): XmlOutput {
  const defined = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : ([[key, String(value)]] as const),
  );
  return {
    name,
    attributes: Object.fromEntries(defined),
    content: typeof content === 'string' ? content : content.filter((child) => child !== undefined),
  };
}

/** Returns `<name>text</name>`, or undefined if there is no text. */
export function leaf(name: string, text: string | number | boolean | undefined): XmlOutput | undefined {
  return text === undefined ? undefined : xml(name, {}, String(text));
}

/** Prints the whole document. Throws if a text has a character that XML cannot represent, even escaped. */
export function printXml(root: XmlOutput): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${print(root, '')}`;
}

function print({ name, attributes, content }: XmlOutput, indent: string): string {
  invariant(NAME.test(name), `"${name}" is the name of an element`);
  const tag = Object.entries(attributes).reduce((text, [key, value]) => {
    invariant(NAME.test(key), `"${key}" is the name of an attribute`);
    return `${text} ${key}="${escapeText(value).replaceAll('\t', '&#9;').replaceAll('\n', '&#10;')}"`;
  }, `${indent}<${name}`);
  if (content.length === 0) return `${tag}/>\n`;
  if (typeof content === 'string') return `${tag}>${escapeText(content)}</${name}>\n`;
  return `${tag}>\n${content.map((child) => print(child, `${indent}  `)).join('')}${indent}</${name}>\n`;
}

function escapeText(text: string): string {
  if (ILLEGAL_CHARACTER.test(text)) {
    throw new TypeError(
      `Cannot write ${JSON.stringify(text.slice(0, 80))} as XML: it has a character that XML does not allow; remove it`,
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
