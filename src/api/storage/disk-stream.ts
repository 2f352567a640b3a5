/**
 * The protocol that transfers the content of a disk from or to a node over one connection. Lines are JSON:
 *
 *   exportdisk   node: header line, `size` bytes, trailer line
 *   importdisk   client: header line, `size` bytes, trailer line; node: answer line
 *   upload       client: header line; node: progress of an earlier attempt; client: offset at which it resumes, the
 *                bytes from there, trailer line (with the hash of all bytes); node: answer line
 *
 * The receiver accepts the bytes only if their hash matches the trailer. Both ends use this module.
 */
import { createHash, type Hash } from 'node:crypto';
import { isRecord } from '#kube/meta.ts';

/** Verbs of VMs that open such a connection. The query parameter `volume` names the volume. */
export const DISK_VERBS = ['exportdisk', 'importdisk'] as const;
export type DiskVerb = (typeof DISK_VERBS)[number];

/** The verb that uploads an image: a subresource of persistentvolumeclaims. */
export const UPLOAD_VERB = 'upload';

/** The WebSocket subprotocol. */
export const DISK_PROTOCOL = 'disk.selfsame.io';

/**
 * On claims that wait for an upload: `true`. Only these accept an upload, and no guest uses them until it is complete.
 */
export const UPLOAD_ANNOTATION = 'selfsame.io/upload';

export const DISK_STREAM_FORMATS = ['raw', 'qcow2'] as const;
export type DiskStreamFormat = (typeof DISK_STREAM_FORMATS)[number];

export interface DiskHeader {
  /** Number of bytes that follow. */
  readonly size: number;
  readonly format: DiskStreamFormat;
  /** Size that the guest sees; set by a node that exports. */
  readonly virtualSize?: number;
  /** Space that the disk occupies on the node that exports it: an estimate of its data without holes. */
  readonly allocatedBytes?: number;
  /** Uploads only: true if existing content may be replaced. */
  readonly replace?: boolean;
  /**
   * Uploads only: the number of bytes that need room on the node, because a node stores no zeros. Older clients do not
   * send it; the node then notices only during the transfer that it has no room.
   */
  readonly dataBytes?: number;
  /** Uploads of qcow2 only: the number of bytes that need room after the conversion to raw, if that is known. */
  readonly convertedBytes?: number;
}

/**
 * Reasons for which a node refuses content, so that clients need not parse messages:
 *
 *   InTransfer   another connection has the disk open; a retry may succeed
 *   HasContent   the disk has content; only `replace` overwrites it
 *   NoRoom       the node has too little free space
 */
const DISK_REFUSALS = ['InTransfer', 'HasContent', 'NoRoom'] as const;
export type DiskRefusalReason = (typeof DISK_REFUSALS)[number];

/** The refusal of content, before or after the transfer. */
interface DiskRefusal {
  readonly error: string;
  /** Undefined for other refusals, and for nodes of earlier versions. */
  readonly reason?: DiskRefusalReason;
}

/** The bytes of an upload that the node has, and their sha256. Only a client with the same bytes may resume there. */
interface UploadProgress {
  readonly offset: number;
  readonly sha256: string;
}

/** The bytes of an earlier attempt; `hash` covers the first `offset` bytes. */
export interface ResumePoint {
  readonly offset: number;
  readonly hash: Hash;
}

export interface DiskTrailer {
  /** Hash of the bytes, in hex. */
  readonly sha256: string;
}

export type DiskAnswer = DiskTrailer | DiskRefusal;

/** Builds a refusal; an undefined reason is omitted. */
export function diskRefusal(error: string, reason: DiskRefusalReason | undefined): DiskRefusal {
  return reason === undefined ? { error } : { error, reason };
}

/** Messages of nodes that send no reason. */
const OLD_MESSAGES: readonly (readonly [RegExp, DiskRefusalReason])[] = [
  [/ is being exported or imported$/, 'InTransfer'],
  [/ has content already, which would be lost$/, 'HasContent'],
];

/** Returns the reason of a refusal, or undefined if it is none of the known ones. `reason` is what the node sent. */
export function parseDiskRefusal(error: string, reason: unknown): DiskRefusalReason | undefined {
  return DISK_REFUSALS.find((known) => known === reason) ?? OLD_MESSAGES.find(([message]) => message.test(error))?.[1];
}

/** The received data is not what the header or the protocol requires. */
export class DiskStreamError extends Error {
  override name = 'DiskStreamError';
}

/** The connection ended early; the data received so far is valid, so that an upload can be resumed. */
export class DiskStreamInterrupted extends DiskStreamError {}

const MAX_LINE_BYTES = 4096;
const SHA256 = /^[0-9a-f]{64}$/;

export function encodeDiskLine(value: DiskHeader | DiskAnswer | UploadProgress | { readonly offset: number }): Buffer {
  const line = Buffer.from(`${JSON.stringify(value)}\n`);
  if (line.length <= MAX_LINE_BYTES || !('error' in value)) return line;
  const { error, reason } = value;
  return encodeDiskLine(diskRefusal(error.slice(0, MAX_LINE_BYTES / 8), reason));
}

/** Reads one direction of the connection. Its methods throw DiskStreamError if the data is invalid or incomplete. */
export class DiskReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async readHeader(): Promise<DiskHeader> {
    const line = await this.#line();
    const { size, virtualSize, allocatedBytes, dataBytes, convertedBytes } = line;
    const format = DISK_STREAM_FORMATS.find((one) => one === line['format']);
    if (!isSize(size) || format === undefined || (virtualSize !== undefined && !isSize(virtualSize))) {
      throw new DiskStreamError('the header line has no valid size and format');
    }
    const replace = line['replace'] === true;
    return {
      size,
      format,
      ...(virtualSize !== undefined && { virtualSize }),
      ...(isSize(allocatedBytes) && { allocatedBytes }),
      ...(replace && { replace }),
      ...(isSize(dataBytes) && { dataBytes }),
      ...(isSize(convertedBytes) && { convertedBytes }),
    };
  }

  /** Reads the node's report on an earlier attempt. */
  async readProgress(): Promise<UploadProgress | DiskRefusal> {
    const { offset, sha256, error, reason } = await this.#line();
    if (typeof error === 'string') return diskRefusal(error, parseDiskRefusal(error, reason));
    if (!isSize(offset) || !SHA256.test(String(sha256)))
      throw new DiskStreamError('the progress line has no valid offset and sha256');
    return { offset, sha256: String(sha256) };
  }

  /** Reads the offset at which the client resumes: 0, or the number of bytes that the node has. */
  async readOffset(received: number): Promise<number> {
    const { offset } = await this.#line();
    if (offset === 0 || offset === received) return offset;
    throw new DiskStreamError(`the client resumes at another offset than 0 or ${received}`);
  }

  async readAnswer(): Promise<DiskAnswer> {
    const line = await this.#line();
    const { error, reason } = line;
    if (typeof error === 'string') return diskRefusal(error, parseDiskRefusal(error, reason));
    const sha256 = String(line['sha256']);
    if (!SHA256.test(sha256)) throw new DiskStreamError('the last line has no valid sha256');
    return { sha256 };
  }

  /** Yields the bytes. The caller must read to the end: the hash is verified after the last byte. */
  async *readVerified(
    { size }: DiskHeader,
    onDigest?: (sha256: string) => void,
    { offset, hash }: ResumePoint = { offset: 0, hash: createHash('sha256') },
  ): AsyncGenerator<Buffer, void, undefined> {
    for (let left = size - offset; left > 0;) {
      const piece = await this.#some(left);
      left -= piece.length;
      hash.update(piece);
      yield piece;
    }
    const answer = await this.readAnswer();
    if ('error' in answer) throw new DiskStreamError(answer.error);
    const sha256 = hash.digest('hex');
    if (answer.sha256 !== sha256) {
      throw new DiskStreamError(`the received bytes do not match the sha256 of the sender: theirs is ${sha256}`);
    }
    onDigest?.(sha256);
  }

  /** Reads and discards everything until the other side closes the connection. */
  async discardRest(): Promise<void> {
    while ((await this.#chunks.next()).done !== true);
  }

  async #line(): Promise<Record<string, unknown>> {
    const pieces: Buffer[] = [];
    for (let bytes = 0; ;) {
      const piece = await this.#some(MAX_LINE_BYTES);
      const end = piece.indexOf(0x0a);
      bytes += end < 0 ? piece.length : end;
      if (bytes > MAX_LINE_BYTES) throw new DiskStreamError(`a line is longer than ${MAX_LINE_BYTES} bytes`);
      pieces.push(end < 0 ? piece : piece.subarray(0, end));
      if (end < 0) continue;
      this.#rest = Buffer.concat([piece.subarray(end + 1), this.#rest]);
      return parseLine(Buffer.concat(pieces).toString('utf8'));
    }
  }

  async #some(max: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done === true) throw new DiskStreamInterrupted('the connection ended too early');
      this.#rest = value;
    }
    const piece = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }
}

/** Yields header, bytes and trailer. Throws if the content does not have exactly `size` bytes. */
export async function* streamDisk(
  header: DiskHeader,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, DiskTrailer, undefined> {
  yield encodeDiskLine(header);
  return yield* streamContent(header, chunks);
}

/** Yields the bytes from the offset on, and the trailer. */
export async function* streamContent(
  header: DiskHeader,
  chunks: AsyncIterable<Uint8Array>,
  { offset, hash }: ResumePoint = { offset: 0, hash: createHash('sha256') },
): AsyncGenerator<Buffer, DiskTrailer, undefined> {
  let sent = offset;
  for await (const chunk of chunks) {
    sent += chunk.length;
    if (sent > header.size) throw new DiskStreamError(`the content has more than ${header.size} bytes`);
    hash.update(chunk);
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  }
  if (sent !== header.size) throw new DiskStreamError(`the content has ${sent} bytes; expected ${header.size}`);
  const trailer = { sha256: hash.digest('hex') };
  yield encodeDiskLine(trailer);
  return trailer;
}

function parseLine(text: string): Record<string, unknown> {
  try {
    const line: unknown = JSON.parse(text);
    if (isRecord(line)) return line;
  } catch {
    // Reported below.
  }
  throw new DiskStreamError('a line is not a JSON object');
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
