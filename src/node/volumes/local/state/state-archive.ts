/**
 * The format of a persistent state as a single file, for snapshots and exports:
 *
 *   selfsame-state 1 <sha256 of the next line>
 *   {"files":[{"name":"nvram.fd","size":540672,"sha256":"…"},…]}
 *   the files, one after the other
 *
 * Archives are small and are kept in memory. Pure; state-archive-files.ts reads and writes the files on disk.
 */
import { createHash } from 'node:crypto';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/storage/snapshot-state.ts';
import { isRecord } from '#kube/meta.ts';
import { SnapshotUnusableError } from '#node/volumes/volumes-port.ts';

export interface StateFile {
  /** `nvram.fd`, or `tpm/` and a file name. */
  readonly name: string;
  readonly content: Buffer;
}

export const MAX_STATE_FILES = 64;
export const TPM_DIR = 'tpm';
export const NVRAM_FILE = 'nvram.fd';

const MAX_HEADER_BYTES = 64 * 1024;
const FIRST_LINE = /^selfsame-state 1 ([0-9a-f]{64})$/;
/** Excludes swtpm's lock file, which begins with a dot, and unfinished files, which begin with TMP. */
const TPM_FILE = /^(?!TMP)[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Reports whether the file belongs to the persistent content of the TPM. */
export function isTpmFile(name: string): boolean {
  return TPM_FILE.test(name);
}

export function buildArchive(files: readonly StateFile[]): Buffer {
  const listed = files.map(({ name, content }) => ({ name, size: content.length, sha256: sha256(content) }));
  const header = JSON.stringify({ files: listed });
  const lines = Buffer.from(`selfsame-state 1 ${sha256(header)}\n${header}\n`);
  const archive = Buffer.concat([lines, ...files.map(({ content }) => content)]);
  if (archive.length > MAX_STATE_ARCHIVE_BYTES || files.length > MAX_STATE_FILES) {
    const found = `${files.length} files with ${archive.length} bytes`;
    throw new SnapshotUnusableError(`Cannot store the persistent state: ${found}; expected ${limits}`);
  }
  return archive;
}

const limits = `at most ${MAX_STATE_FILES} files and ${MAX_STATE_ARCHIVE_BYTES} bytes`;

/** Parses an archive. Throws SnapshotUnusableError if the archive is damaged or is not an archive. */
export function parseArchive(archive: Buffer): StateFile[] {
  if (archive.length > MAX_STATE_ARCHIVE_BYTES)
    throw unusableError(`it has ${archive.length} bytes; expected ${limits}`);
  const { header, rest } = parseHeader(archive);
  const files: StateFile[] = [];
  let at = 0;
  for (const { name, size, sha256: expectedDigest } of header) {
    const content = rest.subarray(at, at + size);
    at += size;
    if (content.length !== size) throw unusableError(`it ends in the middle of ${JSON.stringify(name)}`);
    if (sha256(content) !== expectedDigest) throw unusableError(`the digest of ${JSON.stringify(name)} does not match`);
    files.push({ name, content });
  }
  if (at !== rest.length) throw unusableError(`it has ${rest.length - at} more bytes than its list of files says`);
  return files;
}

interface FileEntry {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

function parseHeader(archive: Buffer): { header: FileEntry[]; rest: Buffer } {
  const first = archive.subarray(0, MAX_HEADER_BYTES).indexOf(0x0a);
  const [, expectedDigest] = FIRST_LINE.exec(archive.toString('latin1', 0, Math.max(first, 0))) ?? [];
  if (expectedDigest === undefined) throw unusableError('it is not an archive of persistent state');
  const end = archive.subarray(0, first + MAX_HEADER_BYTES).indexOf(0x0a, first + 1);
  const line = archive.subarray(first + 1, Math.max(end, first + 1));
  if (end < 0 || sha256(line) !== expectedDigest) throw unusableError('the digest of its list of files does not match');
  return { header: parseFileList(line.toString('utf8')), rest: archive.subarray(end + 1) };
}

/** Parses the list of files. The digest matches, so an error here was written by the creator of the archive. */
function parseFileList(text: string): FileEntry[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw unusableError('its list of files cannot be read', cause);
  }
  const files: unknown = isRecord(parsed) ? parsed['files'] : undefined;
  if (!Array.isArray(files) || files.length > MAX_STATE_FILES) throw unusableError('its list of files cannot be read');
  const seen = new Set<string>();
  return files.map((entry: unknown) => {
    const { name, size, sha256: digest } = isRecord(entry) ? entry : {};
    if (typeof name !== 'string' || !isStateFile(name) || seen.has(name)) {
      throw unusableError(`it has a file ${JSON.stringify(name)}; expected ${NVRAM_FILE} and files of ${TPM_DIR}/`);
    }
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0 || typeof digest !== 'string') {
      throw unusableError('its list of files cannot be read');
    }
    seen.add(name);
    return { name, size, sha256: digest };
  });
}

function isStateFile(name: string): boolean {
  const prefix = `${TPM_DIR}/`;
  return name === NVRAM_FILE || (name.startsWith(prefix) && isTpmFile(name.slice(prefix.length)));
}

function unusableError(why: string, cause?: unknown): SnapshotUnusableError {
  return new SnapshotUnusableError(
    `Cannot use the archive of a persistent state: ${why}`,
    cause === undefined ? {} : { cause },
  );
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
