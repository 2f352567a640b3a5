/** The store's worker thread. Answers requests one after the other. SQLite's calls block, so they run only here. */
import { parentPort, workerData } from 'node:worker_threads';
import { unreachable } from '#lib/invariant.ts';
import { createFile } from '#engine/store/sqlite/create-file.ts';
import { FileDamagedError, isDiskFull, toOpenError, toWriteError } from '#engine/store/sqlite/file-errors.ts';
import { checkFile } from '#engine/store/sqlite/file-check.ts';
import { LogReader } from '#engine/store/sqlite/log-reader.ts';
import { LogWriter } from '#engine/store/sqlite/log-writer.ts';
import type { Reply, Request, WorkerSetup } from '#engine/store/sqlite/protocol.ts';

const { file, shared } = workerData as WorkerSetup;
const port = parentPort!;
const writer = new LogWriter(file);
let reader: LogReader | undefined;
let firstHalf = false;

port.on('message', (request: Request) => {
  let reply: Reply;
  try {
    reply = handle(request);
  } catch (cause) {
    const opening = request.kind === 'open' || request.kind === 'read';
    const error = opening ? toOpenError(file, cause) : toWriteError(file, cause);
    const isFull = !opening && isDiskFull(cause);
    const why = error instanceof FileDamagedError ? 'damaged' : isFull ? 'full' : 'unavailable';
    reply = { kind: 'failed', why, message: error.message };
  }
  port.postMessage(reply, reply.kind === 'chunk' && reply.packed ? [reply.packed] : []);
  if (request.kind === 'close') port.close();
});

function handle(request: Request): Reply {
  switch (request.kind) {
    case 'open':
      if (checkFile(file) === 'absent') createFile(file);
      reader = new LogReader(file);
      return { kind: 'opened', compactedRevision: reader.compactedRevision };
    case 'read':
      return readNextChunk(reader!);
    case 'append':
      writer.append(Buffer.from(request.packed ?? shared, 0, request.length), request);
      return { kind: 'done' };
    case 'compact':
      writer.compact(request.revision, request.removable);
      return { kind: 'done' };
    case 'limit':
      writer.limitPages(request.pages);
      return { kind: 'done' };
    case 'copy':
      writer.copy(request.to);
      return { kind: 'done' };
    case 'close':
      reader?.close();
      writer.close();
      return { kind: 'done' };
    default:
      return unreachable(request);
  }
}

function readNextChunk(from: LogReader): Reply {
  // Two halves in turn: the main thread unpacks one while the worker fills the other.
  const half = shared.byteLength / 2;
  firstHalf = !firstHalf;
  const offset = firstHalf ? 0 : half;
  const chunk = from.readChunk(Buffer.from(shared, offset, half));
  if (chunk) return { kind: 'chunk', offset: chunk.packed ? 0 : offset, ...chunk };
  from.close();
  reader = undefined;
  writer.open(from.newestRevision);
  return { kind: 'end' };
}
