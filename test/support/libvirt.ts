/**
 * Uses libvirt as an oracle: it completes domain definitions that nothing starts. virsh runs the QEMU driver in its own
 * process below its own directory (qemu:///embed), so there is no daemon, no network and no service, and it ends with
 * its input. For root, the driver would need users that only a full installation creates, so virsh then runs as
 * `nobody`.
 */
import { spawn } from 'node:child_process';
import { accessSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const VIRSH = '/usr/bin/virsh';
/** Installed together with the driver. */
const DRIVER = '/usr/bin/virt-qemu-run';
const NOBODY = 65_534;
const LIMIT_MS = 50_000;

/** Returns why libvirt cannot be used on this machine, or undefined if it can. */
export function libvirtSkipReason(): string | undefined {
  const missing = [VIRSH, DRIVER].find((path) => !isInstalled(path));
  return missing && `there is no ${missing}; scripts/setup.sh --for test installs it on Debian`;
}

function isInstalled(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
}

export interface Libvirt {
  /** Returns the domains as libvirt completes them, in the same order. Throws if libvirt refuses one. */
  define(domains: readonly string[]): Promise<readonly string[]>;
}

/**
 * Opens libvirt in a directory that is removed at the end of the test. The first call takes two seconds longer, because
 * libvirt probes QEMU.
 */
export function openLibvirt(t: Pick<TestContext, 'after'>): Libvirt {
  const dir = mkdtempSync(join(tmpdir(), 'libvirt-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  for (const path of [dir, ...Object.values(homesIn(dir))]) {
    mkdirSync(path, { recursive: true });
    if (IS_ROOT) chownSync(path, NOBODY, NOBODY);
  }
  let count = 0;
  return {
    async define(domains) {
      const files = domains.map((xml) => ({ name: `domain-${count++}`, xml }));
      for (const { name, xml } of files) writeFileSync(join(dir, `${name}.xml`), withName(xml, name), { mode: 0o644 });
      const script = files.map(({ name }) => `define ${join(dir, name)}.xml\ndumpxml ${name}\n`).join('');
      const defined = await runVirsh(dir, script);
      return files.map(({ name, xml }) => {
        const definition = defined.find((text) => text.includes(`<name>${name}</name>`));
        if (definition === undefined) throw new Error(`libvirt has not defined ${name}:\n${xml}`);
        return definition;
      });
    },
  };
}

const IS_ROOT = process.getuid?.() === 0;

function homesIn(dir: string): Record<'HOME' | 'XDG_RUNTIME_DIR' | 'XDG_CACHE_HOME' | 'XDG_CONFIG_HOME', string> {
  const at = (name: string) => join(dir, name);
  return { HOME: at('home'), XDG_RUNTIME_DIR: at('run'), XDG_CACHE_HOME: at('cache'), XDG_CONFIG_HOME: at('config') };
}

function withName(xml: string, name: string): string {
  return xml.replace(/<name>[^<]*<\/name>/, `<name>${name}</name>`).replace(/<uuid>[^<]*<\/uuid>/, '');
}

/** Runs the script and returns the domains that virsh prints. */
async function runVirsh(dir: string, script: string): Promise<readonly string[]> {
  const child = spawn(VIRSH, ['--quiet', '--connect', `qemu:///embed?root=${join(dir, 'root')}`], {
    cwd: dir,
    timeout: LIMIT_MS,
    ...(IS_ROOT && { uid: NOBODY, gid: NOBODY }),
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', ...homesIn(dir) },
  });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  child.stdin.end(script);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const refused = errors.split('\n').filter((line) => line.startsWith('error:'));
  if (code !== 0 || refused.length > 0) {
    throw new Error(`Cannot ask libvirt: virsh ended with ${code}: ${errors.slice(0, 4000)}`);
  }
  return [...output.matchAll(/<domain [\s\S]*?<\/domain>/g)].map(([text]) => text);
}
