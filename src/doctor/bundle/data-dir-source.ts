/** Reads the data directory for a support bundle. Does not follow links, and opens only requested files. */
import { open, opendir, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BundleSource } from '#doctor/bundle/gather.ts';

const MAX_DEPTH = 8;

export function dataDirSource(dataDir: string, api: BundleSource['api']): BundleSource {
  return {
    api,
    async files(limit) {
      const found: { path: string; size: number }[] = [];
      await walk(dataDir, '', 0, async (path) => {
        const { size } = await lstat(join(dataDir, path));
        found.push({ path, size });
        return found.length < limit;
      });
      return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    },
    async ends(path, first, last) {
      const file = await open(join(dataDir, path), 'r');
      try {
        const { size } = await file.stat();
        const part = async (from: number, length: number) => {
          const buffer = Buffer.alloc(length);
          const { bytesRead } = await file.read(buffer, 0, length, from);
          return buffer.toString('utf8', 0, bytesRead);
        };
        if (size <= first + last) return await part(0, size);
        const end = await part(size - last, last);
        // Drops the partial first line.
        return `${await part(0, first)}\n(...)\n${end.slice(end.indexOf('\n') + 1)}`;
      } finally {
        await file.close();
      }
    },
  };
}

/** Walks the directory until `visit` returns false. */
async function walk(
  root: string,
  below: string,
  depth: number,
  visit: (path: string) => Promise<boolean>,
): Promise<boolean> {
  if (depth > MAX_DEPTH) return true;
  const dir = await opendir(join(root, below)).catch(() => undefined);
  if (dir === undefined) return true;
  for await (const entry of dir) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    const isContinued = entry.isDirectory()
      ? await walk(root, path, depth + 1, visit)
      : !entry.isFile() || (await visit(path));
    if (!isContinued) return false;
  }
  return true;
}
