/**
 * Block devices made of image files. Each domain has its own device for each of its volumes, and the kernel is the only
 * one that remembers: a domain's device stands on a second name of the image, `<domain id>.block` beside it, and the
 * kernel tells for each device on which name it stands. So nothing is lost when we are killed at any point, and a volume
 * that two domains share is let go by one without the other noticing. Only root may do this.
 */
import { chown, link, readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrorWithCode, type Directory } from './directory.ts';
import type { RunCommand } from './run-command.ts';

const SUFFIX = '.block';
const DEVICE = /^loop\d{1,5}$/;

interface LoopDevice {
  /** /dev/loop3 */
  readonly path: string;
  readonly backingFile: string;
}

/** The device of this domain over the image; the same one when asked again, as large as the image is now. */
export async function attachLoop(
  directory: Directory,
  image: string,
  domainId: string,
  { run, readonly }: { run: RunCommand; readonly: boolean },
): Promise<string> {
  const name = join(directory.path, domainId + SUFFIX);
  const attached = (await loopDevices()).find(({ backingFile }) => backingFile === name);
  if (attached !== undefined) {
    await run('losetup', ['--set-capacity', attached.path]);
    return attached.path;
  }
  await link(join(directory.path, image), name).catch((error: unknown) => {
    if (!isErrorWithCode(error, 'EEXIST')) throw error;
  });
  const { stdout } = await run('losetup', ['--find', '--show', ...(readonly ? ['--read-only'] : []), name]);
  const path = stdout.trim();
  if (!/^\/dev\/loop\d+$/.test(path))
    throw new Error(`Cannot attach "${name}": losetup answered ${stdout.slice(0, 100)}`);
  return path;
}

/** Detaches every device of the domain that stands on a volume in one of these directories. Fine where there is none. */
export async function detachLoops(domainId: string, volumeDirs: readonly string[], run: RunCommand): Promise<void> {
  for (const { path, backingFile } of await loopDevices()) {
    const volumeDir = dirname(dirname(backingFile));
    if (basename(backingFile) !== domainId + SUFFIX || !volumeDirs.includes(volumeDir)) continue;
    // The kernel uses the device again for anybody's file.
    const { gid } = await stat(path);
    await chown(path, 0, gid);
    await run('losetup', ['--detach', path]);
    await rm(backingFile, { force: true });
  }
}

/** Tells the devices over an image that it has grown. */
export async function growLoops(directory: string, run: RunCommand): Promise<void> {
  const own = (await loopDevices()).filter(
    ({ backingFile }) => backingFile.endsWith(SUFFIX) && dirname(backingFile) === directory,
  );
  for (const { path } of own) await run('losetup', ['--set-capacity', path]);
}

async function loopDevices(): Promise<LoopDevice[]> {
  const names = await readdir('/sys/block').catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => DEVICE.test(name))
      .map(async (name) => {
        const backingFile = await readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => undefined);
        return backingFile === undefined ? undefined : { path: `/dev/${name}`, backingFile: backingFile.trimEnd() };
      }),
  );
  return found.filter((device) => device !== undefined);
}
