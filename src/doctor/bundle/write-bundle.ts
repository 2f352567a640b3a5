/** Writes a support bundle as a tar.gz that only its user may read. */
import { rename, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import type { BundleFile } from '#doctor/bundle/gather.ts';
import { BLOCK, padding, printTarHeader } from '#formats/ova/tar-header.ts';

const PRIVATE_FILE = 0o600;
const FOLDER = 'selfsame-bundle';

export async function writeBundle(path: string, files: readonly BundleFile[], seconds: number): Promise<number> {
  const parts = files.flatMap(({ name, text }) => {
    const content = Buffer.from(text);
    return [printTarHeader(`${FOLDER}/${name}`, content.length, seconds), content, padding(content.length)];
  });
  const archive = gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]));
  const draft = `${path}.part`;
  await writeFile(draft, archive, { mode: PRIVATE_FILE });
  await rename(draft, path);
  return archive.length;
}
