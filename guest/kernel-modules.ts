/** Determines the load order of kernel modules from the modules themselves. */
import { readFileSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { join } from 'node:path';

/**
 * Returns the paths of the modules and all their dependencies, dependencies first. Omits built-in modules, without
 * files.
 */
export function loadOrder(modulesDir: string, wanted: readonly string[]): string[] {
  const files = new Map(filesBelow(modulesDir).map((path) => [moduleName(basename(path, '.ko')), path]));
  const order = new Set<string>();
  const visit = (name: string, by: string) => {
    const path = files.get(moduleName(name));
    if (path === undefined)
      throw new Error(`Cannot build the guest: the kernel has no module ${name}, which ${by} needs`);
    if (order.has(path)) return;
    for (const dependency of dependenciesOf(readFileSync(path))) visit(dependency, name);
    order.add(path);
  };
  for (const name of wanted) visit(name, 'the guest');
  return [...order];
}

/** Reads `depends=a,b` from the .modinfo section of a module, where a zero byte ends it. */
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

/** Normalizes a name, because the kernel treats dashes and underscores in names of modules alike. */
function moduleName(name: string): string {
  return name.replaceAll('-', '_');
}

function filesBelow(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ko'))
    .map((entry) => join(entry.parentPath, entry.name));
}
