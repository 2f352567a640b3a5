/**
 * What the measures of VMs stand on: the whole plane as its users run it, in a folder that goes away with everything
 * that runs in it. Guests outlive their plane, so nothing but `clear` ends them for sure.
 */
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
import { killBelow } from './processes-below.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, '.cache');

export interface PlaneOptions {
  readonly nodes: number;
  readonly hypervisor: 'qemu' | 'fake';
  /** For the Node of server and agents. */
  readonly nodeOptions?: string;
}

export class VmGround {
  readonly dir: string;
  readonly #port: number;
  readonly #profileDir: string | undefined;
  #plane: Program | undefined;
  #transport: HttpTransport | undefined;

  static async prepare(profileDir?: string): Promise<VmGround> {
    await mkdir(CACHE, { recursive: true });
    return new VmGround(await mkdtemp(join(CACHE, 'bench-vms-')), await freePort(), profileDir);
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

  /** Also again, on what the one before left. */
  async startPlane({ nodes, hypervisor, nodeOptions = '' }: PlaneOptions): Promise<Program> {
    const port = String(this.#port);
    const flags = ['--nodes', String(nodes), '--hypervisor', hypervisor, '--accel', 'tcg'];
    const profiling = this.#profileDir === undefined ? '' : `--cpu-prof --cpu-prof-dir=${this.#profileDir}`;
    this.#plane = await Program.start({
      file: join(ROOT, 'selfsame'),
      args: ['up', '--data-dir', this.dataDir, '--port', port, '--log-level', 'warn', ...flags],
      env: { NODE_OPTIONS: `${nodeOptions} ${profiling}`.trim() },
    });
    return this.#plane;
  }

  /** Guests stay. */
  async stopPlane(): Promise<void> {
    this.#transport?.close();
    this.#transport = undefined;
    await this.#plane?.stop();
    this.#plane = undefined;
  }

  target(): Promise<Target> {
    return engineTarget(this.dataDir, this.plane.pid);
  }

  /** As the administrator. */
  async transport(): Promise<HttpTransport> {
    if (this.#transport === undefined) {
      const text = await readFile(this.kubeconfig, 'utf8');
      const refuse = (path: string): never => {
        throw new Error(`Cannot use the kubeconfig: it names the file ${path}; expected certificates in place`);
      };
      const access = loadKubeconfig(text, { readFile: refuse });
      this.#transport = createHttpTransport(access, { userAgent: 'selfsame-bench', clock: systemClock });
    }
    return this.#transport;
  }

  async client(): Promise<Client> {
    return createClient(await this.transport());
  }

  /** The server, and the agents by the name of their node. */
  async managers(): Promise<{ readonly server: number; readonly nodes: ReadonlyMap<string, number> }> {
    const nodesDir = join(this.dataDir, 'nodes');
    const names = (await readdir(nodesDir)).sort();
    const pids = names.map(async (name) => [name, Number(await readFile(join(nodesDir, name, 'server.pid'), 'utf8'))]);
    return { server: this.plane.pid, nodes: new Map((await Promise.all(pids)) as [string, number][]) };
  }

  /** The server first: it would start its agents again. */
  async clear(): Promise<void> {
    await this.stopPlane();
    await killBelow(this.dir);
    await rm(this.dir, { recursive: true, force: true, maxRetries: 10 });
  }
}
