/**
 * Uploads an image to the disk of a claim. After a broken connection, it reconnects: the node reports how much it has, and
 * that part is not sent again if it matches the image.
 *
 *   connect ─► offset ─► send the rest ─► compare checksums ─► done
 *      ▲                        │ broken
 *      └──────── wait ◄─────────┘        (gives up after MAX_ATTEMPTS without progress)
 */
import {
  streamContent,
  DISK_PROTOCOL,
  DiskReader,
  encodeDiskLine,
  DiskStreamError,
  UPLOAD_VERB,
} from '#api/storage/disk-stream.ts';
import type { ResumePoint, DiskHeader } from '#api/storage/disk-stream.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { hashPrefix, type LocalImage } from '#cli/commands/image-upload/local-image.ts';
import { ContentRefusedError, diskRefusalOf, sendContent } from '#cli/transfer/disk-transfer.ts';
import { sleepAlive } from '#lib/keep-alive.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';
import { trackTransfer } from '#lib/terminal/track-transfer.ts';
import { ApiError } from '#kube/api-error.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

const MAX_ATTEMPTS = 6;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 10_000;

type Api = Pick<ApiConnection, 'openWebSocket' | 'namespace'>;

interface UploadOptions {
  readonly status: StatusOutput;
  /** The time to wait for the claim to be ready. */
  readonly readyMs: number;
  /** True to overwrite existing content. */
  readonly replace: boolean;
}

/** The upload was interrupted. Running the same command again resumes it. */
export class UploadInterruptedError extends CommandError {
  override name = 'UploadInterruptedError';
}

/**
 * Uploads the image and returns its sha256, which both sides agree on. Throws UploadInterruptedError, or CommandError if
 * the upload is refused; the disk is unchanged then.
 */
export async function uploadImage(api: Api, claim: string, image: LocalImage, options: UploadOptions): Promise<string> {
  const { status, readyMs, replace } = options;
  const { clock } = status;
  const { size, format, dataBytes, convertedBytes } = image;
  const header: DiskHeader = {
    ...{ size, format, dataBytes },
    ...(convertedBytes !== undefined && { convertedBytes }),
    ...(replace && { replace }),
  };
  const path = `/apis/${SUBRESOURCES_GROUP}/v1/namespaces/${encodeURIComponent(api.namespace)}/persistentvolumeclaims/${encodeURIComponent(claim)}/${UPLOAD_VERB}`;
  const beganAt = clock.elapsed();
  let [furthest, failedAttempts, connected] = [0, 0, false];
  for (;;) {
    try {
      const stream = await api.openWebSocket(path, [DISK_PROTOCOL]);
      stream.on('error', () => {});
      connected = true;
      try {
        return await send(stream, image, header, {
          ...options,
          onOffset(offset) {
            if (offset > furthest) [furthest, failedAttempts] = [offset, 0];
          },
        });
      } finally {
        stream.destroy();
      }
    } catch (cause) {
      if (!isTransient(cause, { connected })) throw cause;
      const isNotReady = !connected && cause instanceof ApiError;
      const isOverdue = isNotReady ? clock.elapsed() - beganAt >= readyMs : ++failedAttempts >= MAX_ATTEMPTS;
      if (isOverdue) {
        throw new UploadInterruptedError(`the upload was interrupted: ${errorMessage(cause)}`, { cause });
      }
      status.report(`${claim}: ${errorMessage(cause)}; retrying`);
      const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(failedAttempts, 10), MAX_WAIT_MS);
      await sleepAlive(clock, waitMs);
    }
  }
}

/** Reports whether a retry may help: no connection, a server error, or a node that still has the previous connection. */
function isTransient(error: unknown, { connected }: { readonly connected: boolean }): boolean {
  if (error instanceof ContentRefusedError) return false;
  if (!(error instanceof ApiError)) return true;
  return error.code >= 500 || (connected && diskRefusalOf(error) === 'InTransfer');
}

interface SendOptions extends UploadOptions {
  onOffset(offset: number): void;
}

async function send(
  stream: WebSocketStream,
  image: LocalImage,
  header: DiskHeader,
  options: SendOptions,
): Promise<string> {
  const reader = new DiskReader(stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
  stream.write(encodeDiskLine(header));
  const start = await negotiateOffset(stream, reader, image);
  options.onOffset(start.offset);
  const { status } = options;
  const transfer = { what: image.path, size: image.size, from: start.offset };
  const chunks = trackTransfer(status, transfer, image.chunks(start.offset));
  return await sendContent(stream, reader, streamContent(header, chunks, start), () => {
    if (image.format === 'qcow2') status.report(`${image.path}: converting it to raw`);
  });
}

/** Agrees with the node on where to start: after the content that it has, if the image begins with the same bytes. */
async function negotiateOffset(stream: WebSocketStream, reader: DiskReader, image: LocalImage): Promise<ResumePoint> {
  const progress = await reader.readProgress();
  if ('error' in progress) throw new ContentRefusedError(progress.error, progress.reason);
  const { offset, sha256 } = progress;
  const hash = offset > image.size ? undefined : await hashPrefix(image, offset);
  const isSame = hash?.copy().digest('hex') === sha256;
  const start = isSame && hash ? { offset, hash } : { offset: 0, hash: await emptyHash(image) };
  stream.write(encodeDiskLine({ offset: start.offset }));
  return start;
}

async function emptyHash(image: LocalImage) {
  const hash = await hashPrefix(image, 0);
  if (hash === undefined) throw new DiskStreamError('an empty beginning has a hash');
  return hash;
}
