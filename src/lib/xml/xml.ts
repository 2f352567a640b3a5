/**
 * Reads XML: strictly, within limits, and into values that do not depend on the parser. Names are compared by namespace
 * and local name, never by prefix. xml-scan.ts refuses harmful texts before they are parsed; xml-writer.ts writes XML.
 */
import { DOMParser, type Element as DomElement, type Node as DomNode } from '@xmldom/xmldom';
import { XML_LIMITS, XmlError, scanXml, type XmlLimits } from '#lib/xml/xml-scan.ts';

interface XmlAttribute {
  /** Empty for a name without a prefix. */
  readonly namespace: string;
  readonly name: string;
  readonly value: string;
}

export interface XmlElement {
  /** Empty if the element has none. */
  readonly namespace: string;
  /** The local name. */
  readonly name: string;
  /** The attributes without the declarations of namespaces. */
  readonly attributes: readonly XmlAttribute[];
  readonly children: readonly XmlElement[];
  /** The text directly in the element, unchanged. */
  readonly text: string;
  readonly line: number;
}

const XMLNS = 'http://www.w3.org/2000/xmlns/';
const [ELEMENT, TEXT, CDATA] = [1, 3, 4];
const ENCODING = /^<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([^"']{0,40})["']/;
/** Encodings whose bytes are valid UTF-8. */
const ENCODINGS = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii']);

/** Returns the root element. Throws an XmlError for XML that is malformed, too large or not allowed. */
export function parseXml(input: Uint8Array | string, limits: XmlLimits = XML_LIMITS): XmlElement {
  const text = decodeText(input, limits);
  scanXml(text, limits);
  let problem: XmlError | undefined;
  try {
    const document = new DOMParser({
      locator: true,
      // By default the parser also treats characters of XML 1.1 as line ends.
      normalizeLineEndings: (source) => source.replaceAll(/\r\n?/g, '\n'),
      onError: (_level, message, context: { locator?: { lineNumber?: number } }) => {
        // The parser guesses from U+FFFD that decoding failed, but decodeUtf8 has already checked that.
        if (message.startsWith('Unicode replacement character')) return;
        problem ??= new XmlError(firstLine(message), context.locator?.lineNumber || undefined);
        throw problem;
      },
    }).parseFromString(text, 'text/xml');
    if (document.documentElement === null) throw new XmlError('there is no element');
    return convertElement(document.documentElement);
  } catch (cause) {
    if (problem !== undefined) throw problem;
    if (cause instanceof XmlError) throw cause;
    throw new XmlError(cause instanceof Error ? firstLine(cause.message) : 'it is malformed', undefined, { cause });
  }
}

function decodeText(input: Uint8Array | string, limits: XmlLimits): string {
  const size = typeof input === 'string' ? Buffer.byteLength(input) : input.length;
  if (size > limits.bytes) throw new XmlError(`it has ${size} bytes, more than ${limits.bytes}`);
  const text = typeof input === 'string' ? input.replace(/^\uFEFF/, '') : decodeUtf8(input);
  const encoding = ENCODING.exec(text)?.[1]?.toLowerCase();
  if (encoding !== undefined && !ENCODINGS.has(encoding)) {
    throw new XmlError(`the encoding is "${encoding}"; expected UTF-8`, 1);
  }
  return text;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new XmlError('it is not encoded in UTF-8', undefined, { cause });
  }
}

function firstLine(message: string): string {
  return (message.split('\n')[0] ?? '').slice(0, 200).trim();
}

/** Converts an element and its descendants. The recursion is bounded by limits.depth. */
function convertElement(element: DomElement): XmlElement {
  const children: XmlElement[] = [];
  let text = '';
  for (let node: DomNode | null = element.firstChild; node !== null; node = node.nextSibling) {
    if (node.nodeType === ELEMENT) children.push(convertElement(node as DomElement));
    else if (node.nodeType === TEXT || node.nodeType === CDATA) text += node.nodeValue ?? '';
  }
  const attributes = Array.from({ length: element.attributes.length }, (_, i) => element.attributes.item(i))
    .filter((attribute) => attribute !== null)
    .filter(({ namespaceURI }) => namespaceURI !== XMLNS)
    .map((attribute) => ({
      namespace: attribute.namespaceURI ?? '',
      name: attribute.localName ?? attribute.name,
      value: attribute.value,
    }));
  return {
    namespace: element.namespaceURI ?? '',
    name: element.localName ?? element.tagName,
    attributes,
    children,
    text,
    line: element.lineNumber ?? 0,
  };
}

/** Returns the children with this local name, in any namespace unless one is given. */
export function childrenNamed(element: XmlElement | undefined, name: string, namespace?: string): XmlElement[] {
  return (element?.children ?? []).filter(
    (child) => child.name === name && (namespace === undefined || child.namespace === namespace),
  );
}

export function childNamed(element: XmlElement | undefined, name: string, namespace?: string): XmlElement | undefined {
  return childrenNamed(element, name, namespace)[0];
}

/** Returns the value of an attribute, or undefined if the element does not have it. */
export function attributeOf(element: XmlElement | undefined, name: string, namespace?: string): string | undefined {
  return element?.attributes.find(
    (attribute) => attribute.name === name && (namespace === undefined || attribute.namespace === namespace),
  )?.value;
}
