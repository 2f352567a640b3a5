/** Writes a support bundle as a tar.gz that only its user may read. */
import { createWriteStream } from 'node:fs';
import { rename, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { BundleFile } from '#doctor/bundle/gather.ts';
import { tarFile, writeTar } from '#lib/tar/write-tar.ts';

const PRIVATE_FILE = 0o600;
const FOLDER = 'selfsame-bundle';

/** Returns the size of the written file. */
export async function writeBundle(
  path: string,
  files: readonly BundleFile[],
  modifiedSeconds: number,
): Promise<number> {
  const draft = `${path}.part`;
  const entries = files.map(({ name, text }) => tarFile(`${FOLDER}/${name}`, text));
  await pipeline(
    writeTar(entries, { modifiedSeconds }),
    createGzip(),
    createWriteStream(draft, { mode: PRIVATE_FILE }),
  );
  await rename(draft, path);
  return (await stat(path)).size;
}
