/**
 * The plane that the measurements of VMs use: the real program in a temporary directory. Guests outlive their plane, so
 * `tearDown` kills all processes in the directory before it removes the directory.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '#client/client.ts';
import { createHttpTransport, type HttpTransport } from '#client/http.ts';
import { loadKubeconfig } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { systemClock } from '#lib/clock.ts';
import { engineTarget, freePort } from '../engine-process.ts';
import { Program } from '../program.ts';
import type { Target } from '../raw-h2.ts';
import { killProcessesIn } from './processes-in-dir.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, '.cache');

export interface PlaneOptions {
  readonly nodes: number;
  readonly hypervisor: 'qemu' | 'fake';
  /** The subnets of the network of guests. Without them, nothing changes in the network of the machine. */
  readonly guestSubnets?: string;
  /** Node options of server and agents. */
  readonly nodeOptions?: string;
}

export class VmBench {
  readonly dir: string;
  readonly #port: number;
  readonly #profileDir: string | undefined;
  #plane: Program | undefined;
  #transport: HttpTransport | undefined;

  static async prepare(profileDir?: string): Promise<VmBench> {
    await mkdir(CACHE, { recursive: true });
    return new VmBench(await mkdtemp(join(CACHE, 'bench-vms-')), await freePort(), profileDir);
  }

  private constructor(dir: string, port: number, profileDir: string | undefined) {
    this.dir = dir;
    this.#port = port;
    this.#profileDir = profileDir;
  }

  get dataDir(): string {
    return join(this.dir, 'data');
  }

  get kubeconfig(): string {
    return join(this.dataDir, 'kubeconfig');
  }

  get plane(): Program {
    if (this.#plane === undefined) throw new Error('Cannot measure: the plane does not run');
    return this.#plane;
  }

  /** Starts the plane, also on the data of a previous one. */
  async startPlane({ nodes, hypervisor, guestSubnets = 'none', nodeOptions = '' }: PlaneOptions): Promise<Program> {
    const port = String(this.#port);
    const flags = [
      '--nodes',
      String(nodes),
      '--hypervisor',
      hypervisor,
      '--accel',
      'tcg',
      '--guest-subnets',
      guestSubnets,
    ];
    const profiling = this.#profileDir === undefined ? '' : `--cpu-prof --cpu-prof-dir=${this.#profileDir}`;
    this.#plane = await Program.start({
      file: join(ROOT, 'selfsame'),
      args: ['up', '--data-dir', this.dataDir, '--port', port, '--log-level', 'warn', ...flags],
      env: { NODE_OPTIONS: `${nodeOptions} ${profiling}`.trim() },
    });
    return this.#plane;
  }

  /** Stops the plane; guests continue. */
  async stopPlane(): Promise<void> {
    this.#transport?.close();
    this.#transport = undefined;
    await this.#plane?.stop();
    this.#plane = undefined;
  }

  target(): Promise<Target> {
    return engineTarget(this.dataDir, this.plane.pid);
  }

  /** Returns a transport with the administrator's access. */
  async transport(): Promise<HttpTransport> {
    if (this.#transport === undefined) {
      const text = await readFile(this.kubeconfig, 'utf8');
      const refuse = (path: string): never => {
        throw new Error(`Cannot use the kubeconfig: it refers to the file ${path}; expected embedded certificates`);
      };
      const access = loadKubeconfig(text, { readFile: refuse });
      this.#transport = createHttpTransport(access, { userAgent: 'selfsame-bench', clock: systemClock });
    }
    return this.#transport;
  }

  async client(): Promise<Client> {
    return createClient(await this.transport());
  }

  /** Returns the pids of the server and, by node, of the agents. */
  async managers(): Promise<{ readonly server: number; readonly nodes: ReadonlyMap<string, number> }> {
    const nodesDir = join(this.dataDir, 'nodes');
    const names = (await readdir(nodesDir)).sort();
    const pids = names.map(async (name) => [name, Number(await readFile(join(nodesDir, name, 'server.pid'), 'utf8'))]);
    return { server: this.plane.pid, nodes: new Map((await Promise.all(pids)) as [string, number][]) };
  }

  /** Stops the server first, because it would restart its agents. Then kills everything and removes the directory. */
  async tearDown(): Promise<void> {
    await this.stopPlane();
    await killProcessesIn(this.dir);
    releaseMountsIn(this.dir);
    await rm(this.dir, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Releases the directories that the sandboxes of killed guests held. */
function releaseMountsIn(dir: string): void {
  const targets = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  for (const target of targets) if (target.startsWith(`${dir}/`)) execFileSync('umount', ['--lazy', target]);
}
