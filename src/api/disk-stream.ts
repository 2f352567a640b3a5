/**
 * The content of a disk on its way out of a node, or into one, as bytes of one connection. Lines are JSON:
 *
 *   exportdisk   node: header line, `size` bytes, trailer line
 *   importdisk   client: header line, `size` bytes, trailer line; node: answer line
 *   upload       client: header line; node: how far an earlier try came; client: from where it goes on, the bytes from
 *                there, trailer line (of all of them); node: answer line
 *
 * What arrives counts when the trailer fits it. Both ends read by the same rules: this file.
 */
import { createHash, type Hash } from 'node:crypto';
import { isRecord } from '#kube/meta.ts';

/** Verbs of VMs whose requests become such a connection; which volume is meant stands in the query (`volume`). */
export const DISK_VERBS = ['exportdisk', 'importdisk'] as const;
export type DiskVerb = (typeof DISK_VERBS)[number];

/** The verb of claims by which images come in; below persistentvolumeclaims. */
export const UPLOAD_VERB = 'upload';

/** The WebSocket protocol. */
export const DISK_PROTOCOL = 'disk.selfsame.io';

/** On claims that wait for their content: `true`. Only such a claim takes an upload, and no guest is given it before. */
export const UPLOAD_ANNOTATION = 'selfsame.io/upload';

export const DISK_STREAM_FORMATS = ['raw', 'qcow2'] as const;
export type DiskStreamFormat = (typeof DISK_STREAM_FORMATS)[number];

export interface DiskHeader {
  /** How many bytes follow. */
  readonly size: number;
  readonly format: DiskStreamFormat;
  /** What a guest sees of it; told by who sends out. */
  readonly virtualSize?: number;
  /** Of an upload: what is there already may go. */
  readonly replace?: boolean;
}

/** How far an upload came, in bytes, and the sha256 of these: only who has the same may go on there. */
export interface UploadProgress {
  readonly offset: number;
  readonly sha256: string;
}

/** Bytes that were there before, as many as are in the hash. */
export interface Begun {
  readonly offset: number;
  readonly hash: Hash;
}

export interface DiskTrailer {
  /** Of the bytes, in hex. */
  readonly sha256: string;
}

export type DiskAnswer = DiskTrailer | { readonly error: string };

/** What came is not what was promised. */
export class DiskStreamError extends Error {
  override name = 'DiskStreamError';
}

/** Nothing was wrong with what came, but there is more of it. */
export class DiskStreamBroken extends DiskStreamError {}

const MAX_LINE_BYTES = 4096;
const SHA256 = /^[0-9a-f]{64}$/;

export function diskLine(value: DiskHeader | DiskAnswer | UploadProgress | { readonly offset: number }): Buffer {
  const line = Buffer.from(`${JSON.stringify(value)}\n`);
  if (line.length <= MAX_LINE_BYTES || !('error' in value)) return line;
  return diskLine({ error: value.error.slice(0, MAX_LINE_BYTES / 8) });
}

/** One direction of the connection. Everything throws DiskStreamError for what is wrong, or cut off. */
export class DiskReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async header(): Promise<DiskHeader> {
    const line = await this.#line();
    const { size, virtualSize } = line;
    const format = DISK_STREAM_FORMATS.find((one) => one === line['format']);
    if (!isSize(size) || format === undefined || (virtualSize !== undefined && !isSize(virtualSize))) {
      throw new DiskStreamError('the first line says no size and no format that we know');
    }
    const replace = line['replace'] === true;
    return { size, format, ...(virtualSize !== undefined && { virtualSize }), ...(replace && { replace }) };
  }

  /** What the node says about an earlier try. */
  async progress(): Promise<UploadProgress | { readonly error: string }> {
    const { offset, sha256, error } = await this.#line();
    if (typeof error === 'string') return { error };
    if (!isSize(offset) || !SHA256.test(String(sha256)))
      throw new DiskStreamError('a line says no offset and no sha256');
    return { offset, sha256: String(sha256) };
  }

  /** From where the client goes on: there, or from the beginning. */
  async start(most: number): Promise<number> {
    const { offset } = await this.#line();
    if (offset === 0 || offset === most) return offset;
    throw new DiskStreamError(`a line says another offset than 0 and ${most}`);
  }

  async answer(): Promise<DiskAnswer> {
    const line = await this.#line();
    if (typeof line['error'] === 'string') return { error: line['error'] };
    const sha256 = String(line['sha256']);
    if (!SHA256.test(sha256)) throw new DiskStreamError('the last line says no sha256');
    return { sha256 };
  }

  /** To be walked to its end: only there it is known whether they are the ones that were sent. */
  async *verified(
    { size }: DiskHeader,
    onDigest?: (sha256: string) => void,
    { offset, hash }: Begun = { offset: 0, hash: createHash('sha256') },
  ): AsyncGenerator<Buffer, void, undefined> {
    for (let left = size - offset; left > 0;) {
      const piece = await this.#some(left);
      left -= piece.length;
      hash.update(piece);
      yield piece;
    }
    const answer = await this.answer();
    if ('error' in answer) throw new DiskStreamError(answer.error);
    const sha256 = hash.digest('hex');
    if (answer.sha256 !== sha256) {
      throw new DiskStreamError(`the bytes are not those that were sent: their sha256 is ${sha256}`);
    }
    onDigest?.(sha256);
  }

  async #line(): Promise<Record<string, unknown>> {
    const pieces: Buffer[] = [];
    for (let bytes = 0; ;) {
      const piece = await this.#some(MAX_LINE_BYTES);
      const end = piece.indexOf(0x0a);
      bytes += end < 0 ? piece.length : end;
      if (bytes > MAX_LINE_BYTES) throw new DiskStreamError('a line is too long');
      pieces.push(end < 0 ? piece : piece.subarray(0, end));
      if (end < 0) continue;
      this.#rest = Buffer.concat([piece.subarray(end + 1), this.#rest]);
      return parsed(Buffer.concat(pieces).toString('utf8'));
    }
  }

  async #some(max: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done === true) throw new DiskStreamBroken('the connection ended too early');
      this.#rest = value;
    }
    const piece = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }
}

/** The bytes as they are sent, with the header before and the trailer after them. Exactly `size` bytes, or it throws. */
export async function* diskStream(
  header: DiskHeader,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, DiskTrailer, undefined> {
  yield diskLine(header);
  return yield* contentStream(header, chunks);
}

/** The bytes from where it goes on, and the trailer after them. */
export async function* contentStream(
  header: DiskHeader,
  chunks: AsyncIterable<Uint8Array>,
  { offset, hash }: Begun = { offset: 0, hash: createHash('sha256') },
): AsyncGenerator<Buffer, DiskTrailer, undefined> {
  let sent = offset;
  for await (const chunk of chunks) {
    sent += chunk.length;
    if (sent > header.size) throw new DiskStreamError(`there are more than ${header.size} bytes`);
    hash.update(chunk);
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  }
  if (sent !== header.size) throw new DiskStreamError(`there are ${sent} bytes; expected ${header.size}`);
  const trailer = { sha256: hash.digest('hex') };
  yield diskLine(trailer);
  return trailer;
}

function parsed(text: string): Record<string, unknown> {
  try {
    const line: unknown = JSON.parse(text);
    if (isRecord(line)) return line;
  } catch {
    // Told below.
  }
  throw new DiskStreamError('a line is no JSON object');
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
