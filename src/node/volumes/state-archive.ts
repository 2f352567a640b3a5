/**
 * The state of a VM as one file, by which it is kept in snapshots and leaves the cluster:
 *
 *   selfsame-state 1 <sha256 of the next line>
 *   {"files":[{"name":"nvram.fd","size":540672,"sha256":"…"},…]}
 *   the files, one after the other
 *
 * What is in it is small and is held in memory. Pure; which files there are on disk is in state-archive-files.ts.
 */
import { createHash } from 'node:crypto';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/snapshot-state.ts';
import { isRecord } from '#kube/meta.ts';
import { SnapshotUnusable } from '#node/volumes-port.ts';

export interface StateFile {
  /** `nvram.fd`, or `tpm/` and the name of a file. */
  readonly name: string;
  readonly content: Buffer;
}

export const MAX_STATE_FILES = 64;
export const TPM_DIR = 'tpm';
export const NVRAM_FILE = 'nvram.fd';

const MAX_HEADER_BYTES = 64 * 1024;
const FIRST_LINE = /^selfsame-state 1 ([0-9a-f]{64})$/;
/** Begins with neither a dot (swtpm's lock) nor TMP (what swtpm is just writing). */
const TPM_FILE = /^(?!TMP)[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Whether it is a file of the TPM that lasts. */
export function isTpmFile(name: string): boolean {
  return TPM_FILE.test(name);
}

export function printArchive(files: readonly StateFile[]): Buffer {
  const listed = files.map(({ name, content }) => ({ name, size: content.length, sha256: sha256(content) }));
  const header = JSON.stringify({ files: listed });
  const lines = Buffer.from(`selfsame-state 1 ${sha256(header)}\n${header}\n`);
  const archive = Buffer.concat([lines, ...files.map(({ content }) => content)]);
  if (archive.length > MAX_STATE_ARCHIVE_BYTES || files.length > MAX_STATE_FILES) {
    const found = `${files.length} files with ${archive.length} bytes`;
    throw new SnapshotUnusable(`Cannot keep the state: ${found}; expected ${limits}`);
  }
  return archive;
}

const limits = `at most ${MAX_STATE_FILES} files and ${MAX_STATE_ARCHIVE_BYTES} bytes`;

/** Throws SnapshotUnusable where it is damaged, or no such file at all. */
export function parseArchive(archive: Buffer): StateFile[] {
  if (archive.length > MAX_STATE_ARCHIVE_BYTES) throw unusable(`it has ${archive.length} bytes; expected ${limits}`);
  const { header, rest } = headerOf(archive);
  const files: StateFile[] = [];
  let at = 0;
  for (const { name, size, sha256: told } of header) {
    const content = rest.subarray(at, at + size);
    at += size;
    if (content.length !== size) throw unusable(`it ends in the middle of ${JSON.stringify(name)}`);
    if (sha256(content) !== told) throw unusable(`${JSON.stringify(name)} is not what it was`);
    files.push({ name, content });
  }
  if (at !== rest.length) throw unusable(`there are ${rest.length - at} bytes more in it than it says`);
  return files;
}

interface Listed {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

function headerOf(archive: Buffer): { header: Listed[]; rest: Buffer } {
  const first = archive.subarray(0, MAX_HEADER_BYTES).indexOf(0x0a);
  const [, told] = FIRST_LINE.exec(archive.toString('latin1', 0, Math.max(first, 0))) ?? [];
  if (told === undefined) throw unusable('it is no archive of state');
  const end = archive.subarray(0, first + MAX_HEADER_BYTES).indexOf(0x0a, first + 1);
  const line = archive.subarray(first + 1, Math.max(end, first + 1));
  if (end < 0 || sha256(line) !== told) throw unusable('its list of files is not what it was');
  return { header: listIn(line.toString('utf8')), rest: archive.subarray(end + 1) };
}

/** The digest fits: what is wrong now was written so. */
function listIn(text: string): Listed[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw unusable('its list of files cannot be read', cause);
  }
  const files: unknown = isRecord(parsed) ? parsed['files'] : undefined;
  if (!Array.isArray(files) || files.length > MAX_STATE_FILES) throw unusable('its list of files cannot be read');
  const seen = new Set<string>();
  return files.map((entry: unknown) => {
    const { name, size, sha256: digest } = isRecord(entry) ? entry : {};
    if (typeof name !== 'string' || !isStateFile(name) || seen.has(name)) {
      throw unusable(`it has a file ${JSON.stringify(name)}; expected ${NVRAM_FILE} and files of ${TPM_DIR}/`);
    }
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0 || typeof digest !== 'string') {
      throw unusable('its list of files cannot be read');
    }
    seen.add(name);
    return { name, size, sha256: digest };
  });
}

function isStateFile(name: string): boolean {
  const prefix = `${TPM_DIR}/`;
  return name === NVRAM_FILE || (name.startsWith(prefix) && isTpmFile(name.slice(prefix.length)));
}

function unusable(why: string, cause?: unknown): SnapshotUnusable {
  return new SnapshotUnusable(`Cannot use the archive of a state: ${why}`, cause === undefined ? {} : { cause });
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
