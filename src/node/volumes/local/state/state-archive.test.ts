import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/storage/snapshot-state.ts';
import { SnapshotUnusableError } from '#node/volumes/volumes-port.ts';
import {
  MAX_STATE_FILES,
  parseArchive,
  buildArchive,
  type StateFile,
} from '#node/volumes/local/state/state-archive.ts';

const FILES: StateFile[] = [
  { name: 'tpm/tpm2-00.permall', content: Buffer.from('keys') },
  { name: 'nvram.fd', content: Buffer.from([0, 10, 255, 10]) },
];

function flipByte(archive: Buffer, at: number): Buffer {
  const copy = Buffer.from(archive);
  copy[at] = copy[at]! ^ 1;
  return copy;
}

/** Builds an invalid archive with correct digests. */
function withList(list: unknown, rest = ''): Buffer {
  const header = JSON.stringify(list);
  const digest = createHash('sha256').update(header).digest('hex');
  return Buffer.from(`selfsame-state 1 ${digest}\n${header}\n${rest}`);
}

const file = (name: unknown, content = 'x', size: unknown = content.length) => ({
  name,
  size,
  sha256: createHash('sha256').update(content).digest('hex'),
});

describe('the archive of a persistent state', () => {
  it('returns the files that were packed', () => {
    assert.deepEqual(parseArchive(buildArchive(FILES)), FILES);
    assert.deepEqual(parseArchive(buildArchive([])), []);
  });

  it('is refused if any byte has changed', () => {
    const archive = buildArchive(FILES);
    for (let at = 0; at < archive.length; at++) {
      assert.throws(() => parseArchive(flipByte(archive, at)), SnapshotUnusableError, `byte ${at}`);
    }
  });

  it('is refused if it is truncated or has additional bytes', () => {
    const archive = buildArchive(FILES);
    for (let size = 0; size < archive.length; size++) {
      assert.throws(() => parseArchive(archive.subarray(0, size)), SnapshotUnusableError, `${size} bytes`);
    }
    assert.throws(() => parseArchive(Buffer.concat([archive, Buffer.from('x')])), /it has 1 more bytes/);
  });

  const hostile: Record<string, [list: unknown, rest: string, says: RegExp]> = {
    'a file that leads elsewhere': [{ files: [file('../x')] }, 'x', /it has a file "..\/x"/],
    'a file deeper than the TPM': [{ files: [file('tpm/a/b')] }, 'x', /it has a file "tpm\/a\/b"/],
    'a file that is not persistent state': [{ files: [file('lock')] }, 'x', /it has a file "lock"/],
    'the lock of swtpm': [{ files: [file('tpm/.lock')] }, 'x', /it has a file/],
    'a file twice': [{ files: [file('nvram.fd'), file('nvram.fd')] }, 'xx', /it has a file "nvram.fd"/],
    'a size that is not a number': [{ files: [file('nvram.fd', 'x', -1)] }, 'x', /cannot be read/],
    'too many files': [
      { files: Array.from({ length: MAX_STATE_FILES + 1 }, (_, i) => file(`tpm/f${i}`, '')) },
      '',
      /cannot be read/,
    ],
    'no list': [{ files: 'nvram.fd' }, '', /cannot be read/],
  };
  for (const [what, [list, rest, says]] of Object.entries(hostile)) {
    it(`is refused with ${what}`, () => {
      assert.throws(() => parseArchive(withList(list, rest)), says);
    });
  }

  it('is limited in size', () => {
    const large = { name: 'nvram.fd', content: Buffer.alloc(MAX_STATE_ARCHIVE_BYTES) };
    assert.throws(() => buildArchive([large]), /1 files with 16777\d+ bytes; expected at most 64 files/);
    const many = Array.from({ length: MAX_STATE_FILES + 1 }, (_, i) => ({
      name: `tpm/${i}`,
      content: Buffer.alloc(0),
    }));
    assert.throws(() => buildArchive(many), SnapshotUnusableError);
    assert.throws(() => parseArchive(Buffer.alloc(MAX_STATE_ARCHIVE_BYTES + 1)), SnapshotUnusableError);
  });
});
