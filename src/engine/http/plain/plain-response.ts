/** Encodes responses to plain requests: head and body in one buffer if they are small, so that there is one write. */
import { STATUS_CODES } from 'node:http';

/** Above this size, a copy costs more than a second write. */
const ONE_PIECE_BYTES = 64 * 1024;

export interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly auditId: string;
  readonly date: string;
}

/** Returns the buffers to write, in order. */
export function encodeResponse(head: ResponseHead, pieces: readonly Buffer[], bodyBytes: number): readonly Buffer[] {
  const text = headText(head, bodyBytes);
  const [only] = pieces;
  // These responses have no body, regardless of the handler.
  if (head.status === 204 || head.status === 304 || only === undefined) return [Buffer.from(text, 'latin1')];
  if (pieces.length > 1 || text.length + only.length > ONE_PIECE_BYTES) return [Buffer.from(text, 'latin1'), ...pieces];
  const bytes = Buffer.allocUnsafe(text.length + only.length);
  bytes.write(text, 0, 'latin1');
  only.copy(bytes, text.length);
  return [bytes];
}

function headText({ status, headers, auditId, date }: ResponseHead, bodyBytes: number): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\naudit-id: ${auditId}\r\ndate: ${date}\r\n`;
  for (const name in headers) {
    const value = headers[name]!;
    if (typeof value === 'string') text += fieldLine(name, value);
    else for (const one of value) text += fieldLine(name, one);
  }
  return bodyBytes === 0 && status === 304 ? `${text}\r\n` : `${text}content-length: ${bodyBytes}\r\n\r\n`;
}

/** Header values may come from objects, so they must not be able to end the head. */
const UNSAFE = /[^\t\x20-\x7e\x80-\xff]/;

function fieldLine(name: string, value: string): string {
  if (UNSAFE.test(value))
    throw new Error(`Cannot send the header ${name}: its value has characters that are not allowed in headers`);
  return `${name}: ${value}\r\n`;
}
