/**
 * The contents of the image: this program below /opt/selfsame with its runtime packages, Node, and the libraries that
 * Node is linked to, from this machine. There is no shell and no base image, so nothing else needs updates.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import type { ImageEntry } from './oci-image.ts';

export const PROGRAM_DIR = 'opt/selfsame';
export const NODE = 'usr/local/bin/node';
/** An unprivileged user that owns nothing in the image. */
export const USER = 65_532;

const TEST_FILE = /\.test\.ts$/;
const TEST_DIRS = new Set(['testing']);
/** Files of packages that are not needed at run time: types, source maps and documents. Licenses are included. */
const UNNEEDED_FILE = /\.(?:map|md|ts|mts|cts|html|ico)$/;
const UNNEEDED_DIRS = new Set(['test', 'docs', 'examples', 'benchmarks', 'benchmark', '.github']);

interface Package {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Returns the entries, every directory before its contents. `root` is the project, `node` the path of Node. */
export function imageContents(root: string, node: string): ImageEntry[] {
  const files = new Map<string, ImageEntry>();
  const add = (name: string, from: string | Buffer, mode = 0o644): void =>
    void files.set(name, { type: 'file', name, mode, from });
  for (const file of programFiles(root)) add(posix.join(PROGRAM_DIR, file), join(root, file));
  for (const file of packageFiles(root)) add(posix.join(PROGRAM_DIR, file), join(root, file));
  add(NODE, realpathSync(node), 0o755);
  for (const library of librariesOf(node)) add(library.slice(1), realpathSync(library), 0o755);
  add('etc/passwd', Buffer.from(`root:x:0:0:root:/:/sbin/nologin\nselfsame:x:${USER}:${USER}::/:/sbin/nologin\n`));
  add('etc/group', Buffer.from(`root:x:0:\nselfsame:x:${USER}:\n`));
  const directories = new Map<string, ImageEntry>([['tmp', { type: 'directory', name: 'tmp', mode: 0o1777 }]]);
  for (const name of files.keys()) {
    for (let dir = posix.dirname(name); dir !== '.'; dir = posix.dirname(dir)) {
      if (!directories.has(dir)) directories.set(dir, { type: 'directory', name: dir, mode: 0o755 });
    }
  }
  return [...directories.values(), ...files.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the files of both programs, without tests. */
function programFiles(root: string): string[] {
  const source = findFiles(join(root, 'src'), ({ name, isDirectory }) =>
    isDirectory ? !TEST_DIRS.has(name) : name.endsWith('.ts') && !TEST_FILE.test(name),
  );
  return ['package.json', 'LICENSE', ...source.map((file) => `src/${file}`)].filter((file) =>
    existsSync(join(root, file)),
  );
}

/** Returns the files of all direct and indirect dependencies, in npm's layout. */
function packageFiles(root: string): string[] {
  return packageDirs(root).flatMap((dir) =>
    findFiles(join(root, dir), ({ name, isDirectory, isTop }) => {
      if (isDirectory) return name !== 'node_modules' && !(isTop && UNNEEDED_DIRS.has(name));
      return !UNNEEDED_FILE.test(name);
    }).map((file) => `${dir}/${file}`),
  );
}

function packageDirs(root: string): string[] {
  const found = new Set<string>();
  const pending = [''];
  for (let dir = pending.pop(); dir !== undefined; dir = pending.pop()) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(root, dir, 'package.json'), 'utf8')) as Package;
    for (const name of Object.keys(dependencies)) {
      const at = resolvePackage(root, dir, name);
      if (found.has(at)) continue;
      found.add(at);
      pending.push(at);
    }
  }
  return [...found].toSorted();
}

/** Finds a package like Node: in the node_modules of each directory on the way up. */
function resolvePackage(root: string, from: string, name: string): string {
  for (let dir = from; ; dir = dirname(dir)) {
    const at = posix.join(dir, 'node_modules', name);
    if (existsSync(join(root, at, 'package.json'))) return at;
    if (dir === '' || dir === '.') break;
  }
  throw new Error(`Cannot find the package ${name}, which ${from || 'the program'} needs; run scripts/setup.sh`);
}

/** Returns the libraries that ldd prints (`libc.so.6 => /lib/…/libc.so.6 (0x…)`), including the loader. */
function librariesOf(node: string): string[] {
  const output = execFileSync('ldd', [node], { encoding: 'utf8' });
  const missing = /^\s*(\S+) => not found/m.exec(output)?.[1];
  if (missing !== undefined)
    throw new Error(`Cannot build the image: ${node} needs ${missing}, which is not installed`);
  return [...output.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].map(([, path]) => path!);
}

interface Candidate {
  readonly name: string;
  readonly isDirectory: boolean;
  /** True for entries directly in the directory. */
  readonly isTop: boolean;
}

/** Returns paths relative to the directory, with slashes. Ignores links, which the image does not need. */
function findFiles(folder: string, isWanted: (candidate: Candidate) => boolean, dir = folder): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    const candidate = { name: entry.name, isDirectory: entry.isDirectory(), isTop: dir === folder };
    if (!(entry.isDirectory() || entry.isFile()) || !isWanted(candidate)) return [];
    if (entry.isDirectory()) return findFiles(folder, isWanted, path);
    return [relative(folder, path).split(sep).join('/')];
  });
}
