/**
 * Returns why this machine does not support persistent state on block volumes, as a reason to skip tests; false if it
 * does.
 */
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
