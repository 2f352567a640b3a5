/**
 * Brings an image into the disk behind a claim. A connection that breaks is made again: the node tells how far it came,
 * and what is there is not sent again where it is the same.
 *
 *   connect ─► how far ─► send the rest ─► checksum of both sides ─► done
 *      ▲                        │ broken
 *      └──── wait a little ◄────┘        (TRIES times without a byte more: given up)
 */
import { once } from 'node:events';
import { contentStream, DISK_PROTOCOL, DiskReader, diskLine, DiskStreamError, UPLOAD_VERB } from '#api/disk-stream.ts';
import type { Begun, DiskAnswer, DiskHeader } from '#api/disk-stream.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { hashBeginning, type LocalImage } from '#cli/image/local-image.ts';
import { keepWaiting } from '#cli/keep-waiting.ts';
import { messageOf } from '#cli/message-of.ts';
import { withProgress } from '#cli/progress.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { WebSocketStream } from '#lib/websocket.ts';

const TRIES = 6;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 10_000;

type Api = Pick<ApiConnection, 'openWebSocket' | 'namespace'>;

export interface UploadOptions {
  readonly clock: Clock;
  readonly say: (line: string) => void;
  /** How long to wait for the claim to be ready. */
  readonly readyMs: number;
  /** What is there already may go. */
  readonly replace: boolean;
}

/** The upload stands still for good, but nothing is lost: the same call goes on. */
export class UploadBroken extends CommandError {
  override name = 'UploadBroken';
}

/** The sha256 that both sides have. Throws UploadBroken, and CommandError where it is refused; the disk is then as it was. */
export async function uploadImage(api: Api, claim: string, image: LocalImage, options: UploadOptions): Promise<string> {
  const { clock, say, readyMs, replace } = options;
  const header: DiskHeader = { size: image.size, format: image.format, ...(replace && { replace }) };
  const path = `/apis/${SUBRESOURCES_GROUP}/v1/namespaces/${encodeURIComponent(api.namespace)}/persistentvolumeclaims/${encodeURIComponent(claim)}/${UPLOAD_VERB}`;
  const beganAt = clock.elapsed();
  let [furthest, fruitless, connected] = [0, 0, false];
  for (;;) {
    try {
      const stream = await api.openWebSocket(path, [DISK_PROTOCOL]);
      stream.on('error', () => {});
      connected = true;
      try {
        return await send(stream, image, header, {
          ...options,
          onOffset(offset) {
            if (offset > furthest) [furthest, fruitless] = [offset, 0];
          },
        });
      } finally {
        stream.destroy();
      }
    } catch (cause) {
      if (!isPassing(cause, { connected })) throw cause;
      const isReadying = !connected && cause instanceof ApiError && clock.elapsed() - beganAt < readyMs;
      if (!isReadying && ++fruitless >= TRIES) {
        throw new UploadBroken(`the upload was interrupted: ${messageOf(cause)}`, { cause });
      }
      say(`${claim}: ${messageOf(cause)}; retrying`);
      const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(fruitless, 10), MAX_WAIT_MS);
      await keepWaiting(clock, waitMs);
    }
  }
}

/** Whether another try may help: no connection, a server that is away, a node that has not seen yet that we were cut off. */
function isPassing(error: unknown, { connected }: { readonly connected: boolean }): boolean {
  if (error instanceof Refused) return false;
  if (!(error instanceof ApiError)) return true;
  return error.code >= 500 || (connected && error.code === 409 && /being exported or imported/.test(error.message));
}

/** The node has said no. */
class Refused extends CommandError {
  override name = 'Refused';
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
  stream.write(diskLine(header));
  const begun = await agree(stream, reader, image);
  options.onOffset(begun.offset);
  const { clock, say } = options;
  const told = withProgress(image.path, image.size, image.chunks(begun.offset), { clock, say, from: begun.offset });
  // The node may refuse midway; this ends the wait for it to read more.
  const heard = new AbortController();
  const answer: Promise<DiskAnswer> = reader.answer().finally(() => heard.abort());
  answer.catch(() => {});
  let sha256 = '';
  const sending = contentStream(header, told, begun);
  while (!heard.signal.aborted) {
    const { done, value } = await sending.next();
    if (done === true) {
      ({ sha256 } = value);
      if (image.format === 'qcow2') say(`${image.path}: converting it to raw`);
      break;
    }
    if (!stream.write(value)) await once(stream, 'drain', { signal: heard.signal }).catch(() => {});
  }
  await sending.return({ sha256 });
  const said = await answer;
  if ('error' in said) throw new Refused(said.error);
  if (said.sha256 !== sha256)
    throw new Refused(`checksum mismatch: the node received content with sha256 ${said.sha256}`);
  return sha256;
}

/** Where to go on: where the node is, if what it has is how the image begins. */
async function agree(stream: WebSocketStream, reader: DiskReader, image: LocalImage): Promise<Begun> {
  const told = await reader.progress();
  if ('error' in told) throw new Refused(told.error);
  const { offset, sha256 } = told;
  const hash = offset > image.size ? undefined : await hashBeginning(image, offset);
  const isSame = hash?.copy().digest('hex') === sha256;
  const begun = isSame && hash ? { offset, hash } : { offset: 0, hash: await emptyHash(image) };
  stream.write(diskLine({ offset: begun.offset }));
  return begun;
}

async function emptyHash(image: LocalImage) {
  const hash = await hashBeginning(image, 0);
  if (hash === undefined) throw new DiskStreamError('an empty beginning has a hash');
  return hash;
}
