import assert from 'node:assert/strict';
import { chown, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { guestUserOf, SHARED_DISKS_GID } from '#node/hardware/guest-user.ts';
import { giveDirectory, giveFile } from '#node/hypervisor/qemu/sandbox/file-owner.ts';

const [mine, other] = [guestUserOf('mine'), guestUserOf('other')];

async function inDirectory(run: (path: string) => Promise<void>): Promise<void> {
  const path = await mkdtemp(join(tmpdir(), 'selfsame-owner-'));
  try {
    await run(path);
  } finally {
    await rm(path, { recursive: true });
  }
}

async function ownerOf(path: string) {
  const { uid, gid, mode } = await stat(path);
  return { uid, gid, mode: mode & 0o777 };
}

describe('a file of the host', { skip: process.getuid?.() !== 0 && 'only root can change owners' }, () => {
  it('belongs to the guest that uses it, and to the next one', () =>
    inDirectory(async (dir) => {
      const path = join(dir, 'disk.img');
      await writeFile(path, '', { mode: 0o644 });
      for (const user of [other, mine]) {
        await giveFile(path, user, 'own');
        assert.deepEqual(await ownerOf(path), { ...user, mode: 0o600 });
      }
    }));

  it('that is only read stays with its owner, and other guests can read it', () =>
    inDirectory(async (dir) => {
      const path = join(dir, 'media.iso');
      await writeFile(path, '');
      await giveFile(path, other, 'own');
      await giveFile(path, mine, 'shared');
      assert.deepEqual(await ownerOf(path), { uid: other.uid, gid: SHARED_DISKS_GID, mode: 0o640 });
    }));

  it('is never given through a link', () =>
    inDirectory(async (dir) => {
      await writeFile(join(dir, 'secret'), '');
      await symlink(join(dir, 'secret'), join(dir, 'disk.img'));
      await assert.rejects(giveFile(join(dir, 'disk.img'), mine, 'own'), { code: 'ELOOP' });
      await mkdir(join(dir, 'tpm'));
      await symlink(join(dir, 'secret'), join(dir, 'tpm', 'permall'));
      await giveDirectory(join(dir, 'tpm'), mine);
      assert.equal((await stat(join(dir, 'secret'))).uid, 0);
    }));

  it('in a directory of state belongs to the guest with the directory', () =>
    inDirectory(async (dir) => {
      const path = join(dir, 'permall');
      await writeFile(path, '');
      await chown(path, other.uid, other.gid);
      await giveDirectory(dir, mine);
      assert.equal((await stat(path)).uid, mine.uid);
      assert.equal((await stat(dir)).uid, mine.uid);
    }));
});
