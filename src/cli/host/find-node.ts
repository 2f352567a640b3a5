/** Finds the directory of a node in a data directory. */
import { readdirSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import { HOST_SOCKET } from '#api/host-api.ts';
import { CommandError } from '#lib/command-line/command-error.ts';

/** Returns the directory of the named node, or of the only one. `dataDir` may also be the directory of a node itself. */
export function findNodeDir(dataDir: string, name: string | undefined): string {
  if (name === undefined && listEntries(dataDir).some((entry) => entry.name === HOST_SOCKET)) return dataDir;
  const nodes = listEntries(join(dataDir, 'nodes'))
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  const nodeList = nodes.length === 0 ? 'no nodes' : nodes.join(', ');
  if (name !== undefined) {
    if (nodes.includes(name)) return join(dataDir, 'nodes', name);
    throw new CommandError(`Cannot find node "${name}": ${dataDir} has ${nodeList}`);
  }
  const [only, another] = nodes;
  if (only !== undefined && another === undefined) return join(dataDir, 'nodes', only);
  const hint =
    nodes.length === 0 ? '; set --data-dir to the data directory of selfsame up' : '; choose one with --node';
  throw new CommandError(`this data directory has ${nodeList}${hint}`);
}

function listEntries(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new CommandError(`Cannot read ${dir}: ${(error as Error).message}`);
  }
}
