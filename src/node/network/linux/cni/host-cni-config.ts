/** The CNI configuration of a host, as container runtimes choose it: the first file by name in its directory. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CniError, parseCniConfig, type CniConfigList } from '#node/network/linux/cni/cni-config.ts';

/** The directory that every container runtime uses by default. */
const HOST_CNI_DIR = '/etc/cni/net.d';

const EXTENSIONS = ['.conflist', '.conf', '.json'];
const MAX_FILE_BYTES = 64 * 1024;

/** Returns undefined if the host has no configuration. Throws CniError for one that is not valid. */
export async function readHostCniConfig(directory = HOST_CNI_DIR): Promise<CniConfigList | undefined> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  const [first] = names.filter((name) => EXTENSIONS.some((extension) => name.endsWith(extension))).sort();
  if (first === undefined) return undefined;
  const path = join(directory, first);
  const { size } = await stat(path);
  if (size > MAX_FILE_BYTES) {
    throw new CniError(
      `Cannot use the CNI configuration ${path}: it has ${size} bytes; expected at most ${MAX_FILE_BYTES}`,
      {
        permanent: true,
      },
    );
  }
  return parseCniConfig(await readFile(path, 'utf8'), path);
}
