/** Describes files that people upload by mistake instead of a disk image: archives, web pages, lists of checksums. Pure. */

interface OtherContent {
  /** Completes "it is ...". */
  readonly what: string;
  /** A command that would be right, as an imperative. */
  readonly advice: string;
}

const UNPACK = 'unpack it and upload the disk image inside';
const DECOMPRESS = 'decompress it first';

const ARCHIVES: readonly { readonly at: number; readonly magic: string; readonly content: OtherContent }[] = [
  { at: 0, magic: 'PK\x03\x04', content: { what: 'a zip archive', advice: UNPACK } },
  { at: 0, magic: '7z\xbc\xaf\x27\x1c', content: { what: 'a 7z archive', advice: UNPACK } },
  { at: 0, magic: 'Rar!\x1a\x07', content: { what: 'a rar archive', advice: UNPACK } },
  { at: 257, magic: 'ustar', content: { what: 'a tar archive', advice: UNPACK } },
  { at: 0, magic: '070701', content: { what: 'a cpio archive', advice: UNPACK } },
  { at: 0, magic: 'MSWIM\0\0\0', content: { what: 'a WIM archive', advice: 'install it to a disk first' } },
  { at: 0, magic: 'BZh', content: { what: 'compressed with bzip2', advice: DECOMPRESS } },
  { at: 0, magic: '\x04\x22\x4d\x18', content: { what: 'compressed with lz4', advice: DECOMPRESS } },
];

const OVA: OtherContent = { what: 'an OVA', advice: 'import it with "virtctl import ovf"' };
const NAME_BYTES = 100;
const TEXT_BYTES = 512;
const SHOWN = 40;
const CHECKSUM_LINE = /^(?:[0-9a-f]{32,128} [ *]|[A-Z0-9-]+ ?\(.+\) ?= ?[0-9a-f]{32,128})/m;
const BEGIN_SIGNATURE = '-----BEGIN PGP';

/** Returns a description of the content, or undefined if it is not known. */
export function describeOtherContent(beginning: Buffer): OtherContent | undefined {
  const found = ARCHIVES.find(({ at, magic }) => beginning.toString('latin1', at, at + magic.length) === magic);
  if (found?.content.what === 'a tar archive' && /\.ovf\0/i.test(beginning.toString('latin1', 0, NAME_BYTES + 1))) {
    return OVA;
  }
  return found?.content ?? describeText(beginning);
}

function describeText(beginning: Buffer): OtherContent | undefined {
  const text = decodeText(beginning.subarray(0, TEXT_BYTES));
  if (text === undefined) return undefined;
  if (/^\s*<(?:!doctype html|html)/i.test(text)) {
    return { what: 'a web page', advice: 'check the address of the download, which may have returned an error' };
  }
  if (CHECKSUM_LINE.test(text) || text.startsWith(BEGIN_SIGNATURE)) {
    return { what: 'a list of checksums or a signature', advice: 'upload the image that it belongs to' };
  }
  const [line = ''] = text.trimStart().split('\n');
  const shown = JSON.stringify(line.slice(0, SHOWN).trimEnd());
  return { what: `text that begins with ${shown}`, advice: 'upload a raw or qcow2 image' };
}

const TAB = 0x09;
const CARRIAGE_RETURN = 0x0d;
const ESCAPE = 0x1b;
const SPACE = 0x20;
const isTextByte = (byte: number) => byte >= SPACE || (byte >= TAB && byte <= CARRIAGE_RETURN) || byte === ESCAPE;

/** Returns undefined if the bytes are not text in UTF-8. The last character may be incomplete. */
function decodeText(bytes: Buffer): string | undefined {
  if (bytes.length === 0 || !bytes.every(isTextByte)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return undefined;
  }
}
