/** Reports why the state of guests cannot lie on block volumes here, for tests that skip then; false if it can. */
import { execFileSync } from 'node:child_process';
import { isRoot } from '#node/volumes/testing/volumes-scene.ts';

export function whyNoBlockState(): string | false {
  if (!isRoot) return 'only root may mount';
  try {
    execFileSync('mkfs.ext4', ['-V'], { stdio: 'pipe' });
    execFileSync('losetup', ['--find'], { stdio: 'pipe' });
    return false;
  } catch (error) {
    return `this machine has no ext4 or no loop devices: ${(error as Error).message}`;
  }
}
