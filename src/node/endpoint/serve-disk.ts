/** GET .../exportdisk, .../importdisk and .../upload: the content of a disk over a WebSocket (api/storage/disk-stream.ts). */
import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { once } from 'node:events';
import { DISK_PROTOCOL, diskRefusal, encodeDiskLine, DiskReader, streamDisk } from '#api/storage/disk-stream.ts';
import { UPLOAD_VERB, type ResumePoint, type DiskAnswer, type DiskHeader } from '#api/storage/disk-stream.ts';
import { ApiError, badRequest, internalError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { acceptWebSocket, findHandshakeError, type UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import { CLOSE_CODES, type WebSocketStream } from '#lib/websocket/websocket.ts';
import type { DiskAccess } from '#node/endpoint/endpoint-agent.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import { DiskRefusedError, type DiskContent, type DiskUpload } from '#node/volumes/volumes-port.ts';
import { errorMessage } from '#lib/error-message.ts';

type DiskRoute = Extract<EndpointRoute, { kind: 'disk' }>;

/** Closes idle connections, because guests cannot start while their disk is open. */
const IDLE_TIMEOUT_MS = 120_000;
/** Time for the client to close the connection after a refusal. */
const CLOSE_TIMEOUT_MS = 5000;

interface ServeDiskParts {
  /** Undefined if the disks of the node are simulated. */
  readonly disks: DiskAccess | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Throws ApiError before anything is sent. Resolves when the disk is closed. */
export async function serveDisk(parts: ServeDiskParts, route: DiskRoute, upgrade: UpgradeRequest): Promise<void> {
  const refusal = findHandshakeError(upgrade.request.headers, [DISK_PROTOCOL]);
  if (refusal !== undefined) throw badRequest(`the content of a disk is a WebSocket; ${refusal}`);
  const opened = await open(parts, route);
  try {
    const stream = acceptWebSocket(upgrade, [DISK_PROTOCOL]);
    if (stream !== undefined) await transfer(opened, stream, parts, route);
  } finally {
    await opened.close();
  }
}

async function open(
  { disks }: ServeDiskParts,
  { verb, namespace, claim }: DiskRoute,
): Promise<DiskContent | DiskUpload> {
  if (disks === undefined) throw badRequest('this node has only simulated disks, which cannot be read or written');
  try {
    return verb === 'exportdisk' ? await disks.open(namespace, claim) : await disks.replace(namespace, claim);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const why = errorMessage(error);
    throw error instanceof DiskRefusedError ? refusalStatus(error) : internalError(why, error);
  }
}

/** Returns the response to a refusal before the transfer. The client finds the reason in the causes. */
function refusalStatus({ message, reason }: DiskRefusedError): ApiError {
  const details = reason === undefined ? {} : { causes: [{ reason, message }] };
  return new ApiError(409, 'Conflict', message, { details });
}

async function transfer(
  opened: DiskContent | DiskUpload,
  stream: WebSocketStream,
  { clock, log }: ServeDiskParts,
  { verb, namespace, claim }: DiskRoute,
): Promise<void> {
  const closing = new AbortController();
  stream.on('error', () => closing.abort(new Error('the connection was lost')));
  stream.once('close', () => closing.abort(new Error('the connection was closed')));
  const idleTimer = startIdleTimer(clock, () =>
    stream.close(CLOSE_CODES.internal, `no data was transferred for ${IDLE_TIMEOUT_MS / 1000} seconds`),
  );
  const context: TransferContext = {
    stream,
    signal: closing.signal,
    recordActivity: idleTimer.recordActivity,
    runBusy: idleTimer.runBusy,
  };
  try {
    if ('chunks' in opened) await send(opened, context);
    else await receive(opened, context, { resumable: verb === UPLOAD_VERB, clock });
  } catch (error) {
    const why = errorMessage(error);
    log.info({ err: error, verb, namespace, claim }, 'Cannot transfer the content of a disk');
    stream.close(CLOSE_CODES.internal, why);
  } finally {
    idleTimer.stop();
  }
}

interface TransferContext {
  readonly stream: WebSocketStream;
  readonly signal: AbortSignal;
  recordActivity(): void;
  /** Suspends the idle timer until the work is done, because the client has nothing to send meanwhile. */
  runBusy<T>(work: Promise<T>): Promise<T>;
}

async function send(
  { header, chunks }: DiskContent,
  { stream, signal, recordActivity }: TransferContext,
): Promise<void> {
  // Data of the client is ignored, but must be read to see when the connection closes.
  stream.resume();
  for await (const chunk of streamDisk(header, chunks())) {
    signal.throwIfAborted();
    await writeChunk(stream, chunk, signal);
    recordActivity();
  }
  stream.end();
}

async function receive(
  upload: DiskUpload,
  { stream, signal, recordActivity, runBusy }: TransferContext,
  { resumable, clock }: { readonly resumable: boolean; readonly clock: Clock },
): Promise<void> {
  const reader = new DiskReader(readChunks(stream, recordActivity));
  let answer: DiskAnswer;
  try {
    const header = await reader.readHeader();
    const context = { stream, signal, recordActivity, runBusy };
    const resumed = resumable ? await negotiateResume(upload, header, reader, context) : undefined;
    let sha256 = '';
    const installed = Promise.withResolvers<void>();
    const onDigest = (digest: string) => {
      sha256 = digest;
      // Installing the received content may take long.
      void runBusy(installed.promise);
    };
    try {
      await upload.receive(header, reader.readVerified(header, onDigest, resumed), {
        signal,
        ...(resumed && { from: resumed.offset }),
      });
    } finally {
      installed.resolve();
    }
    answer = { sha256 };
  } catch (error) {
    signal.throwIfAborted();
    answer = diskRefusal(errorMessage(error), error instanceof DiskRefusedError ? error.reason : undefined);
  }
  await writeChunk(stream, encodeDiskLine(answer), signal);
  if ('error' in answer) endWhenRead(stream, reader, clock);
  else stream.end();
}

/**
 * Discards what the client still sends until it has read the refusal and closes the connection. If we closed it at once, a
 * write of the client could fail before it has read the refusal; it would then send everything again.
 */
function endWhenRead(stream: WebSocketStream, reader: DiskReader, clock: Clock): void {
  // A connection that breaks now needs no report: the answer is all that was left to send.
  void reader.discardRest().catch(() => undefined);
  stream.once(
    'close',
    clock.after(CLOSE_TIMEOUT_MS, () => stream.end()),
  );
}

/** Sends the progress of an earlier upload, and reads from which offset the client continues. */
async function negotiateResume(
  upload: DiskUpload,
  header: DiskHeader,
  reader: DiskReader,
  { stream, signal, runBusy }: TransferContext,
): Promise<ResumePoint> {
  const { offset, hash } = await runBusy(upload.readProgress(header));
  await writeChunk(stream, encodeDiskLine({ offset, sha256: hash.copy().digest('hex') }), signal);
  const from = await reader.readOffset(offset);
  return from === offset ? { offset, hash } : { offset: 0, hash: createHash('sha256') };
}

/** Yields the chunks without destroying the stream at the end, because the answer is still to be sent. */
async function* readChunks(stream: Duplex, recordActivity: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    recordActivity();
    yield chunk;
  }
}

async function writeChunk(stream: Duplex, chunk: Buffer, signal: AbortSignal): Promise<void> {
  if (!stream.write(chunk)) await once(stream, 'drain', { signal });
}

function startIdleTimer(clock: Clock, onIdle: () => void) {
  let activeAtMs = clock.elapsed();
  let busyCount = 0;
  let stop = () => {};
  const check = () => {
    if (busyCount > 0) activeAtMs = clock.elapsed();
    const remainingMs = activeAtMs + IDLE_TIMEOUT_MS - clock.elapsed();
    if (remainingMs <= 0) onIdle();
    else stop = clock.after(remainingMs, check);
  };
  check();
  const recordActivity = () => void (activeAtMs = clock.elapsed());
  return {
    recordActivity,
    async runBusy<T>(work: Promise<T>): Promise<T> {
      busyCount++;
      try {
        return await work;
      } finally {
        busyCount--;
        recordActivity();
      }
    },
    stop: () => stop(),
  };
}
