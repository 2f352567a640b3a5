/**
 * Runs a program that reads an image of a user in a sandbox: it sees the programs of the host, the files that it needs, and
 * nothing else. An image can name other files, and a guest that was taken over could write their names into an image after
 * it was checked.
 *
 *   <node dir>/isolated/<id>/     config.json, rootfs/ (mount points only), records/ (those of runc)
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pathExists } from '#lib/path-exists.ts';
import { buildOciConfig, SYSTEM_FILES, type VisibleFile } from '#node/sandbox/oci-config.ts';
import { ENVIRONMENT, ProgramError, type RunCommand, type RunOptions } from '#node/volumes/local/run-command.ts';

const ISOLATED_DIR = 'isolated';
const PRIVATE_DIR = 0o700;
/** The files belong to different users: root reads and writes them regardless of that, and may do nothing else. */
const CAPABILITIES = ['CAP_DAC_OVERRIDE'];
/** Far more than qemu-img needs; most of it is the cache of the files. */
const LIMITS = { memoryBytes: 2 ** 31, cpuShares: 1024, processes: 128 };

export type RunIsolated = (
  command: string,
  args: readonly string[],
  options: RunOptions & { readonly files: readonly VisibleFile[] },
) => Promise<void>;

/** Returns a function that runs programs in sandboxes; `nodeDir` is the directory of the node. Requires root. */
export function isolate(run: RunCommand, nodeDir: string): RunIsolated {
  return async (command, args, { files, ...options }) => {
    const parent = join(nodeDir, ISOLATED_DIR);
    await mkdir(parent, { recursive: true, mode: PRIVATE_DIR });
    const bundle = await mkdtemp(join(parent, 'run-'));
    try {
      await mkdir(join(bundle, 'rootfs'));
      await writeFile(
        join(bundle, 'config.json'),
        JSON.stringify(await buildConfig(bundle, [command, ...args], files)),
      );
      await run('runc', [...recordsOf(bundle), 'run', '--bundle', bundle, basename(bundle)], options);
    } catch (error) {
      throw error instanceof ProgramError ? new ProgramError(command, args, error.reason, { cause: error }) : error;
    } finally {
      await removeBundle(run, bundle);
    }
  };
}

/** Runs programs as usual, for an agent that is not root. */
export function withoutSandbox(run: RunCommand): RunIsolated {
  return async (command, args, { timeoutMs, signal }) => {
    await run(command, args, { ...(timeoutMs !== undefined && { timeoutMs }), signal });
  };
}

/** Ends programs of an earlier agent, which would write to files that the next attempt creates. */
export async function endIsolated(run: RunCommand, nodeDir: string): Promise<void> {
  const parent = join(nodeDir, ISOLATED_DIR);
  for (const name of await readdir(parent).catch(() => [])) await removeBundle(run, join(parent, name));
}

async function buildConfig(bundle: string, command: readonly string[], files: readonly VisibleFile[]): Promise<object> {
  const system: VisibleFile[] = [];
  for (const path of SYSTEM_FILES) if (await pathExists(path)) system.push({ path, readonly: true });
  return buildOciConfig({
    hostname: 'isolated',
    command,
    cwd: '/',
    env: ENVIRONMENT,
    user: { uid: 0, gid: 0 },
    groups: [],
    files: [...system, ...files],
    devices: [],
    capabilities: CAPABILITIES,
    cgroup: `/selfsame/${basename(bundle)}`,
    limits: LIMITS,
  });
}

async function removeBundle(run: RunCommand, bundle: string): Promise<void> {
  // Fails if there is no container any more.
  await run('runc', [...recordsOf(bundle), 'delete', '--force', basename(bundle)]).catch(() => undefined);
  await rm(bundle, { recursive: true, force: true });
}

function recordsOf(bundle: string): string[] {
  return ['--root', join(bundle, 'records')];
}
