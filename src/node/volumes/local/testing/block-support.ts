/** The reasons to skip tests with block devices on this machine; false if it supports them. */
import { execFileSync } from 'node:child_process';
import { isRoot } from '#node/volumes/local/testing/volumes-scene.ts';

export function blockStateSkipReason(): string | false {
  if (!isRoot) return 'only root may mount';
  try {
    execFileSync('mkfs.ext4', ['-V'], { stdio: 'pipe' });
    execFileSync('losetup', ['--find'], { stdio: 'pipe' });
    return false;
  } catch (error) {
    return `this machine has no ext4 or no loop devices: ${(error as Error).message}`;
  }
}

export function loopSkipReason(): string | false {
  if (!isRoot) return 'only root can create loop devices';
  try {
    execFileSync('losetup', ['--find'], { stdio: 'pipe' });
    return false;
  } catch {
    return 'this machine has no loop devices';
  }
}
