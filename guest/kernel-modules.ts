/** Which files to load, in which order, for some modules of a kernel: read from the modules themselves. */
import { readFileSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { join } from 'node:path';

/** Paths of the modules and of all that they stand on, those first. Built-in ones have no file and are left out. */
export function loadOrder(modulesDir: string, wanted: readonly string[]): string[] {
  const files = new Map(filesBelow(modulesDir).map((path) => [moduleName(basename(path, '.ko')), path]));
  const order = new Set<string>();
  const visit = (name: string, by: string) => {
    const path = files.get(moduleName(name));
    if (path === undefined)
      throw new Error(`Cannot build the guest: the kernel has no module ${name}, which ${by} wants`);
    if (order.has(path)) return;
    for (const dependency of dependenciesOf(readFileSync(path))) visit(dependency, name);
    order.add(path);
  };
  for (const name of wanted) visit(name, 'the guest');
  return [...order];
}

/** The .modinfo section of a module holds `depends=a,b`, ended by a zero byte. */
export function dependenciesOf(module: Buffer): string[] {
  const key = Buffer.from('\0depends=');
  const at = module.indexOf(key);
  if (at < 0) return [];
  const start = at + key.length;
  return module
    .toString('latin1', start, module.indexOf(0, start))
    .split(',')
    .filter((name) => name !== '');
}

/** The kernel takes dashes and underscores in names of modules for the same. */
function moduleName(name: string): string {
  return name.replaceAll('-', '_');
}

function filesBelow(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ko'))
    .map((entry) => join(entry.parentPath, entry.name));
}
