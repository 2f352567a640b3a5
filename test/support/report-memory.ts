/**
 * Loaded into the processes of a plane by a test (NODE_OPTIONS): collects the garbage on SIGUSR2 and
 * writes the memory that is left to a file.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

const dir = process.env['MEMORY_REPORT_DIR'];

if (dir !== undefined && isMainThread) {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  process.on('SIGUSR2', () => {
    collectGarbage();
    const { heapUsed, external, rss } = process.memoryUsage();
    const file = join(dir, String(process.pid));
    writeFileSync(`${file}.new`, JSON.stringify({ heap: heapUsed + external, rss }));
    renameSync(`${file}.new`, file);
  });
}
