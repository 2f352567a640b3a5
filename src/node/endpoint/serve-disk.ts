/** GET .../exportdisk, .../importdisk and .../upload: the content of a disk as a WebSocket, as api/disk-stream.ts has it. */
import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { once } from 'node:events';
import { DISK_PROTOCOL, diskLine, DiskReader, diskStream } from '#api/disk-stream.ts';
import { UPLOAD_VERB, type Begun, type DiskAnswer, type DiskHeader } from '#api/disk-stream.ts';
import { ApiError, badRequest, internalError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { CLOSE } from '#lib/websocket-frames.ts';
import { serverHandshake } from '#lib/websocket-handshake.ts';
import { WebSocketStream } from '#lib/websocket.ts';
import type { DiskDoor } from '#node/endpoint/endpoint-agent.ts';
import { headerText } from '#node/endpoint/header-text.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import type { Upgrading } from '#node/endpoint/plain-stream.ts';
import { DiskRefused, type DiskContent, type DiskUpload } from '#node/volumes-port.ts';

type DiskRoute = Extract<EndpointRoute, { kind: 'disk' }>;

/** Who neither sends nor reads for so long keeps a guest from starting for nothing. */
const IDLE_MS = 120_000;
/** As much of a message as a close of a WebSocket holds. */
const MAX_REASON_BYTES = 120;

export interface DiskParts {
  /** Absent where the disks of the node are only pretended. */
  readonly door: DiskDoor | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Throws ApiError as long as nothing was sent; resolves when the disk is closed again. */
export async function serveDisk(parts: DiskParts, route: DiskRoute, upgrading: Upgrading): Promise<void> {
  const { request } = upgrading;
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') throw badRequest('the content of a disk is a WebSocket');
  const handshake = serverHandshake((header) => headerText(request.headers[header]), [DISK_PROTOCOL]);
  if ('refused' in handshake) throw badRequest(handshake.refused.message);
  const opened = await open(parts, route);
  try {
    if (upgrading.socket.destroyed) return;
    upgrading.socket.write(handshake.head);
    const stream = new WebSocketStream(upgrading.socket, { role: 'server', head: upgrading.head });
    await transfer(opened, stream, parts, route);
  } finally {
    await opened.close();
  }
}

async function open({ door }: DiskParts, { verb, namespace, claim }: DiskRoute): Promise<DiskContent | DiskUpload> {
  if (door === undefined) throw badRequest('this node has no disks to read or write');
  try {
    return verb === 'exportdisk' ? await door.open(namespace, claim) : await door.replace(namespace, claim);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw error instanceof DiskRefused ? new ApiError(409, 'Conflict', why) : internalError(why, error);
  }
}

async function transfer(
  opened: DiskContent | DiskUpload,
  stream: WebSocketStream,
  { clock, log }: DiskParts,
  { verb, namespace, claim }: DiskRoute,
): Promise<void> {
  const ending = new AbortController();
  stream.on('error', () => ending.abort(new Error('the connection broke')));
  stream.once('close', () => ending.abort(new Error('the connection was closed')));
  const watch = watchIdle(clock, () => stream.close(CLOSE.internal, `nothing came for ${IDLE_MS / 1000} seconds`));
  const scene: Transfer = { stream, signal: ending.signal, moved: () => watch.moved(), working: watch.working };
  try {
    if ('chunks' in opened) await send(opened, scene);
    else await receive(opened, scene, { resumable: verb === UPLOAD_VERB });
    stream.end();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    log.info({ err: error, verb, namespace, claim }, 'the content of a disk did not get through');
    stream.close(
      CLOSE.internal,
      Buffer.from(why)
        .subarray(0, MAX_REASON_BYTES)
        .toString('utf8')
        .replace(/\uFFFD+$/, ''),
    );
  } finally {
    watch.stop();
  }
}

interface Transfer {
  readonly stream: WebSocketStream;
  readonly signal: AbortSignal;
  moved(): void;
  /** Nothing is to be expected of the other side until it is over. */
  working<T>(work: Promise<T>): Promise<T>;
}

async function send({ header, chunks }: DiskContent, { stream, signal, moved }: Transfer): Promise<void> {
  // What a client says here means nothing, but its close is to be seen.
  stream.resume();
  for await (const chunk of diskStream(header, chunks())) {
    signal.throwIfAborted();
    await written(stream, chunk, signal);
    moved();
  }
}

async function receive(
  upload: DiskUpload,
  { stream, signal, moved, working }: Transfer,
  { resumable }: { readonly resumable: boolean },
): Promise<void> {
  const reader = new DiskReader(watched(stream, moved));
  let answer: DiskAnswer;
  try {
    const header = await reader.header();
    const begun = resumable ? await begin(upload, header, reader, { stream, signal, moved, working }) : undefined;
    let sha256 = '';
    const all = Promise.withResolvers<void>();
    const onDigest = (digest: string) => {
      sha256 = digest;
      // It may take long to make a disk of it.
      void working(all.promise);
    };
    try {
      await upload.receive(header, reader.verified(header, onDigest, begun), {
        signal,
        ...(begun && { from: begun.offset }),
      });
    } finally {
      all.resolve();
    }
    answer = { sha256 };
  } catch (error) {
    signal.throwIfAborted();
    answer = { error: error instanceof Error ? error.message : String(error) };
  }
  await written(stream, diskLine(answer), signal);
}

/** Tells how far an earlier try came, and hears whether it goes on there. */
async function begin(
  upload: DiskUpload,
  header: DiskHeader,
  reader: DiskReader,
  { stream, signal, working }: Transfer,
): Promise<Begun> {
  const { offset, hash } = await working(upload.begun(header));
  await written(stream, diskLine({ offset, sha256: hash.copy().digest('hex') }), signal);
  const from = await reader.start(offset);
  return from === offset ? { offset, hash } : { offset: 0, hash: createHash('sha256') };
}

/** Not destroyed at its end, as other iterators of streams do: the answer goes the other way. */
async function* watched(stream: Duplex, moved: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    moved();
    yield chunk;
  }
}

async function written(stream: Duplex, chunk: Buffer, signal: AbortSignal): Promise<void> {
  if (!stream.write(chunk)) await once(stream, 'drain', { signal });
}

function watchIdle(clock: Clock, onIdle: () => void) {
  let movedAt = clock.elapsed();
  let works = 0;
  let stop = () => {};
  const look = () => {
    if (works > 0) movedAt = clock.elapsed();
    const left = movedAt + IDLE_MS - clock.elapsed();
    if (left <= 0) onIdle();
    else stop = clock.after(left, look);
  };
  look();
  const moved = () => void (movedAt = clock.elapsed());
  return {
    moved,
    async working<T>(work: Promise<T>): Promise<T> {
      works++;
      try {
        return await work;
      } finally {
        works--;
        moved();
      }
    },
    stop: () => stop(),
  };
}
