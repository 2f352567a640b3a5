/** A document that many clients fetch repeatedly: its bytes, their hash, and the bytes compressed once. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const compress = promisify(gzip);

export class ServedDocument {
  readonly contentType: string;
  readonly body: Buffer;
  /** SHA-256 of the bytes in upper-case hex. */
  readonly hash: string;
  #compressed: Promise<Buffer> | undefined;

  constructor(contentType: string, body: Buffer) {
    this.contentType = contentType;
    this.body = body;
    this.hash = createHash('sha256').update(body).digest('hex').toUpperCase();
  }

  /** The value of the ETag header, including quotes. */
  get etag(): string {
    return `"${this.hash}"`;
  }

  /** Reports whether an If-None-Match header contains this document's etag. */
  matches(ifNoneMatch: string | undefined): boolean {
    if (ifNoneMatch === undefined || ifNoneMatch === '') return false;
    if (ifNoneMatch.trim() === '*') return true;
    return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === this.etag);
  }

  /** Compresses on first use, off the event loop. */
  gzip(): Promise<Buffer> {
    return (this.#compressed ??= compress(this.body));
  }
}

export function jsonDocument(value: unknown, contentType = 'application/json'): ServedDocument {
  return new ServedDocument(contentType, Buffer.from(JSON.stringify(value)));
}
