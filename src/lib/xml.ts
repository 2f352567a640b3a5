/**
 * XML in: bounded, strict, and as a small view of our own, so that nobody sees the parser behind it. Names are compared by
 * namespace and local name, never by prefix. What is refused before parsing: xml-scan.ts; XML out: xml-writer.ts.
 */
import { DOMParser, type Element as DomElement, type Node as DomNode } from '@xmldom/xmldom';
import { XML_LIMITS, XmlError, scanXml, type XmlLimits } from '#lib/xml-scan.ts';

export interface XmlAttribute {
  /** '' without a prefix. */
  readonly namespace: string;
  readonly name: string;
  readonly value: string;
}

export interface XmlElement {
  /** '' where there is none. */
  readonly namespace: string;
  /** The local name. */
  readonly name: string;
  /** Declarations of namespaces are none. */
  readonly attributes: readonly XmlAttribute[];
  readonly children: readonly XmlElement[];
  /** What stands directly in it, as it is. */
  readonly text: string;
  readonly line: number;
}

const XMLNS = 'http://www.w3.org/2000/xmlns/';
const [ELEMENT, TEXT, CDATA] = [1, 3, 4];
const ENCODING = /^<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([^"']{0,40})["']/;
/** What is the same bytes in UTF-8. */
const ENCODINGS = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii']);

/** The root element. Throws an XmlError for what is malformed, too large, or not allowed. */
export function parseXml(input: Uint8Array | string, limits: XmlLimits = XML_LIMITS): XmlElement {
  const text = textOf(input, limits);
  scanXml(text, limits);
  let problem: XmlError | undefined;
  try {
    const document = new DOMParser({
      locator: true,
      // The default also takes characters of XML 1.1 for line ends.
      normalizeLineEndings: (source) => source.replaceAll(/\r\n?/g, '\n'),
      onError: (_level, message, context: { locator?: { lineNumber?: number } }) => {
        // It only guesses from U+FFFD what decoding has already proved wrong.
        if (message.startsWith('Unicode replacement character')) return;
        problem ??= new XmlError(firstLine(message), context.locator?.lineNumber || undefined);
        throw problem;
      },
    }).parseFromString(text, 'text/xml');
    if (document.documentElement === null) throw new XmlError('there is no element');
    return viewOf(document.documentElement);
  } catch (cause) {
    if (problem !== undefined) throw problem;
    if (cause instanceof XmlError) throw cause;
    throw new XmlError(cause instanceof Error ? firstLine(cause.message) : 'it is malformed', undefined, { cause });
  }
}

function textOf(input: Uint8Array | string, limits: XmlLimits): string {
  const size = typeof input === 'string' ? Buffer.byteLength(input) : input.length;
  if (size > limits.bytes) throw new XmlError(`it has ${size} bytes, more than ${limits.bytes}`);
  const text = typeof input === 'string' ? input.replace(/^\uFEFF/, '') : decoded(input);
  const encoding = ENCODING.exec(text)?.[1]?.toLowerCase();
  if (encoding !== undefined && !ENCODINGS.has(encoding)) {
    throw new XmlError(`the encoding is "${encoding}"; expected UTF-8`, 1);
  }
  return text;
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new XmlError('it is not encoded in UTF-8', undefined, { cause });
  }
}

function firstLine(message: string): string {
  return (message.split('\n')[0] ?? '').slice(0, 200).trim();
}

/** As deep as limits.depth allows. */
function viewOf(element: DomElement): XmlElement {
  const children: XmlElement[] = [];
  let text = '';
  for (let node: DomNode | null = element.firstChild; node !== null; node = node.nextSibling) {
    if (node.nodeType === ELEMENT) children.push(viewOf(node as DomElement));
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

/** Children of this local name, in any namespace unless one is given. */
export function childrenNamed(element: XmlElement | undefined, name: string, namespace?: string): XmlElement[] {
  return (element?.children ?? []).filter(
    (child) => child.name === name && (namespace === undefined || child.namespace === namespace),
  );
}

export function childNamed(element: XmlElement | undefined, name: string, namespace?: string): XmlElement | undefined {
  return childrenNamed(element, name, namespace)[0];
}

/** The value; undefined where there is no such attribute. */
export function attributeOf(element: XmlElement | undefined, name: string, namespace?: string): string | undefined {
  return element?.attributes.find(
    (attribute) => attribute.name === name && (namespace === undefined || attribute.namespace === namespace),
  )?.value;
}
