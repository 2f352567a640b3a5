/**
 * What the image holds: this program below /opt/selfsame with the packages that it needs to run, Node, and the libraries
 * that Node is linked to, from this machine. No shell and no base image: nothing that would need updates of its own.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import type { TarEntry } from './tar-entry.ts';

export const PROGRAM_DIR = 'opt/selfsame';
export const NODE = 'usr/local/bin/node';
/** Nobody in particular; it owns nothing in the image. */
export const USER = 65_532;

const TEST_FILE = /\.(?:test|fixture)\.ts$/;
const TEST_DIRS = new Set(['testing']);
/** Of packages: their types, maps and papers are not needed; their licenses stay. */
const PAPER = /\.(?:map|md|ts|mts|cts|html|ico)$/;
const PAPER_DIRS = new Set(['test', 'docs', 'examples', 'benchmarks', 'benchmark', '.github']);

interface Package {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** `root`: the project. `node`: the Node that runs it there. In an order in which every directory stands before what is in it. */
export function imageContents(root: string, node: string): TarEntry[] {
  const files = new Map<string, TarEntry>();
  const add = (name: string, from: string | Buffer, mode = 0o644): void =>
    void files.set(name, { type: 'file', name, mode, from });
  for (const file of programFiles(root)) add(posix.join(PROGRAM_DIR, file), join(root, file));
  for (const file of packageFiles(root)) add(posix.join(PROGRAM_DIR, file), join(root, file));
  add(NODE, realpathSync(node), 0o755);
  for (const library of librariesOf(node)) add(library.slice(1), realpathSync(library), 0o755);
  add('etc/passwd', Buffer.from(`root:x:0:0:root:/:/sbin/nologin\nselfsame:x:${USER}:${USER}::/:/sbin/nologin\n`));
  add('etc/group', Buffer.from(`root:x:0:\nselfsame:x:${USER}:\n`));
  const directories = new Map<string, TarEntry>([['tmp', { type: 'directory', name: 'tmp', mode: 0o1777 }]]);
  for (const name of files.keys()) {
    for (let dir = posix.dirname(name); dir !== '.'; dir = posix.dirname(dir)) {
      if (!directories.has(dir)) directories.set(dir, { type: 'directory', name: dir, mode: 0o755 });
    }
  }
  return [...directories.values(), ...files.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Both programs, without tests. */
function programFiles(root: string): string[] {
  const source = filesBelow(join(root, 'src'), ({ name, isDirectory }) =>
    isDirectory ? !TEST_DIRS.has(name) : name.endsWith('.ts') && !TEST_FILE.test(name),
  );
  return ['package.json', 'LICENSE', ...source.map((file) => `src/${file}`)].filter((file) =>
    existsSync(join(root, file)),
  );
}

/** Of all packages that the program depends on, and those that they depend on, as npm has laid them out. */
function packageFiles(root: string): string[] {
  return packageDirs(root).flatMap((dir) =>
    filesBelow(join(root, dir), ({ name, isDirectory, isTop }) => {
      if (isDirectory) return name !== 'node_modules' && !(isTop && PAPER_DIRS.has(name));
      return !PAPER.test(name);
    }).map((file) => `${dir}/${file}`),
  );
}

function packageDirs(root: string): string[] {
  const found = new Set<string>();
  const waiting = [''];
  for (let dir = waiting.pop(); dir !== undefined; dir = waiting.pop()) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(root, dir, 'package.json'), 'utf8')) as Package;
    for (const name of Object.keys(dependencies)) {
      const at = resolvePackage(root, dir, name);
      if (found.has(at)) continue;
      found.add(at);
      waiting.push(at);
    }
  }
  return [...found].toSorted();
}

/** Node looks in the node_modules of each folder on the way up. */
function resolvePackage(root: string, from: string, name: string): string {
  for (let dir = from; ; dir = dirname(dir)) {
    const at = posix.join(dir, 'node_modules', name);
    if (existsSync(join(root, at, 'package.json'))) return at;
    if (dir === '' || dir === '.') break;
  }
  throw new Error(`Cannot find the package ${name}, which ${from || 'the program'} needs; run scripts/setup.sh`);
}

/** As the linker names them: `libc.so.6 => /lib/…/libc.so.6 (0x…)`, and itself. */
function librariesOf(node: string): string[] {
  const told = execFileSync('ldd', [node], { encoding: 'utf8' });
  const missing = /^\s*(\S+) => not found/m.exec(told)?.[1];
  if (missing !== undefined) throw new Error(`Cannot build the image: ${node} needs ${missing}, which is not here`);
  return [...told.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].map(([, path]) => path!);
}

interface Candidate {
  readonly name: string;
  readonly isDirectory: boolean;
  /** Whether it stands in the folder itself. */
  readonly isTop: boolean;
}

/** Relative to the folder, with slashes. Links lead nowhere that is needed. */
function filesBelow(folder: string, isWanted: (candidate: Candidate) => boolean, dir = folder): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    const candidate = { name: entry.name, isDirectory: entry.isDirectory(), isTop: dir === folder };
    if (!(entry.isDirectory() || entry.isFile()) || !isWanted(candidate)) return [];
    if (entry.isDirectory()) return filesBelow(folder, isWanted, path);
    return [relative(folder, path).split(sep).join('/')];
  });
}
