/** Transfers disk content from and to the cluster over WebSockets, in the protocol of api/storage/disk-stream.ts. */
import { once } from 'node:events';
import {
  DISK_PROTOCOL,
  DiskReader,
  parseDiskRefusal,
  streamDisk,
  type DiskAnswer,
  type DiskHeader,
  type DiskRefusalReason,
  type DiskTrailer,
  type DiskVerb,
} from '#api/storage/disk-stream.ts';
import { ApiError } from '#kube/api-error.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError, explainFailure } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

type Api = Pick<ApiConnection, 'openWebSocket' | 'namespace'>;

interface OpenDisk {
  readonly header: DiskHeader;
  /** Reads the content; may be called once. Throws on a checksum mismatch. */
  chunks(): AsyncIterable<Buffer>;
  close(): void;
}

/** Opens a volume for export. The caller must close it. Throws like openWebSocket. */
export async function openDisk(api: Api, vm: string, volume: string): Promise<OpenDisk> {
  const stream = await openStream(api, vm, 'exportdisk', volume);
  const reader = new DiskReader(stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
  try {
    const header = await reader.readHeader();
    return { header, chunks: () => reader.readVerified(header), close: () => void stream.destroy() };
  } catch (cause) {
    stream.destroy();
    throw new CommandError(`Cannot export volume ${volume} of VM ${vm}: ${errorMessage(cause)}`, { cause });
  }
}

/** Uploads the content of a volume. Throws CommandError and leaves the volume unchanged on failure. */
export async function uploadDisk(
  api: Api,
  { vm, volume }: { readonly vm: string; readonly volume: string },
  header: DiskHeader,
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const problem = `Cannot import volume ${volume} of VM ${vm}: `;
  const stream = await explainFailure(problem, openStream(api, vm, 'importdisk', volume));
  try {
    const reader = new DiskReader(stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
    await explainFailure(problem, sendContent(stream, reader, streamDisk(header, chunks)));
  } finally {
    stream.destroy();
  }
}

/** The node refused the content of a disk. */
export class ContentRefusedError extends CommandError {
  override name = 'ContentRefusedError';
  readonly reason: DiskRefusalReason | undefined;

  constructor(message: string, reason?: DiskRefusalReason) {
    super(message);
    this.reason = reason;
  }
}

/** Returns the reason for which a node refused content, or undefined if the error is not such a refusal. */
export function diskRefusalOf(error: unknown): DiskRefusalReason | undefined {
  if (error instanceof ContentRefusedError) return error.reason;
  if (!(error instanceof ApiError) || error.code !== 409) return undefined;
  return parseDiskRefusal(error.message, error.details?.causes?.[0]?.reason);
}

/**
 * Sends the content until the node responds, which may be midway, and returns the checksum that both sides agree on.
 * `sent` is called when all bytes are sent. Throws ContentRefusedError.
 */
export async function sendContent(
  stream: WebSocketStream,
  reader: DiskReader,
  content: AsyncGenerator<Buffer, DiskTrailer, undefined>,
  sent: () => void = () => {},
): Promise<string> {
  const responded = new AbortController();
  const responding: Promise<DiskAnswer> = reader.readAnswer().finally(() => responded.abort());
  responding.catch(() => {});
  let sha256 = '';
  while (!responded.signal.aborted) {
    const { done, value } = await content.next();
    if (done === true) {
      ({ sha256 } = value);
      sent();
      break;
    }
    if (!stream.write(value)) await once(stream, 'drain', { signal: responded.signal }).catch(() => {});
  }
  await content.return({ sha256 });
  const response = await responding;
  if ('error' in response) throw new ContentRefusedError(response.error, response.reason);
  if (response.sha256 !== sha256) {
    throw new ContentRefusedError(`checksum mismatch: the node received content with sha256 ${response.sha256}`);
  }
  return sha256;
}

async function openStream(api: Api, vm: string, verb: DiskVerb, volume: string): Promise<WebSocketStream> {
  const query = new URLSearchParams({ volume });
  const path = `${verbPath('virtualmachines', api.namespace, vm, verb)}?${query.toString()}`;
  const stream = await api.openWebSocket(path, [DISK_PROTOCOL]);
  // Readers and writers get the error as well.
  stream.on('error', () => {});
  return stream;
}
