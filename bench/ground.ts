/**
 * What every measure stands on: the engine with its stock of parcels, the floors beside it, and the load generator,
 * each in a process of its own, in a folder that goes away with them.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BareHttp2Job } from './bare-http2.ts';
import type { BareStoreJob } from './bare-store.ts';
import { capture, engineCertificate, engineTarget, freePort, startEngineProgram } from './engine-process.ts';
import { JobProcess } from './jobs.ts';
import type { LoadJob } from './load.ts';
import type { Stock } from './operations.ts';
import { collectionPath, parcelPath } from './parcel.ts';
import { Program } from './program.ts';
import type { Target } from './raw-h2.ts';
import type { WebhookServerJob } from './webhook-server.ts';

/** 10,000 parcels in two namespaces: one is read and listed, the other patched. */
export const READ_STOCK: Stock = { namespace: 'shelf-a', prefix: 'a', count: 5000 };
export const PATCH_STOCK: Stock = { namespace: 'shelf-b', prefix: 'b', count: 5000 };
export const CREATE_NAMESPACE = 'yard';
export const WATCH_NAMESPACE = 'lookout';
export const NAMESPACES = [READ_STOCK.namespace, PATCH_STOCK.namespace, CREATE_NAMESPACE, WATCH_NAMESPACE];

const CACHE = fileURLToPath(new URL('../.cache', import.meta.url));

export class Ground {
  readonly load = new JobProcess<LoadJob>('./load.ts');
  readonly #dir: string;
  readonly #port: number;
  readonly #profileDir: string | undefined;
  readonly #ended: (() => Promise<void>)[] = [];
  #engine: Program | undefined;

  static async prepare(profileDir: string | undefined): Promise<Ground> {
    // Below the project and not in /tmp: that may be memory, where nothing is ever durable.
    await mkdir(CACHE, { recursive: true });
    return new Ground(await mkdtemp(join(CACHE, 'bench-')), await freePort(), profileDir);
  }

  private constructor(dir: string, port: number, profileDir: string | undefined) {
    this.#dir = dir;
    this.#port = port;
    this.#profileDir = profileDir;
  }

  get dataDir(): string {
    return join(this.#dir, 'data');
  }

  get engine(): Program {
    if (this.#engine === undefined) throw new Error('Cannot measure: the engine does not run');
    return this.#engine;
  }

  target(): Promise<Target> {
    return engineTarget(this.dataDir, this.engine.pid);
  }

  async startEngine({ profiled = false, script }: { profiled?: boolean; script?: string } = {}): Promise<Program> {
    const profileDir = profiled ? this.#profileDir : undefined;
    const place = { dataDir: this.dataDir, port: this.#port, profileDir, script };
    return (this.#engine = await startEngineProgram(place));
  }

  async stopEngine(): Promise<void> {
    await this.#engine?.stop();
    this.#engine = undefined;
  }

  openBareStore(): Promise<Program> {
    const script = fileURLToPath(new URL('./bare-store-open.ts', import.meta.url));
    return Program.start({
      file: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', script, join(this.dataDir, 'store.db')],
      // As the engine's launcher has it.
      env: { NODE_COMPILE_CACHE: join(CACHE, 'node-compile') },
    });
  }

  /** A bare server that answers as the engine does right now; how large one object is, too. */
  async startBareHttp2(): Promise<{ target: Target; objectBytes: number }> {
    const engine = await this.target();
    const object = await capture(engine, parcelPath(READ_STOCK.namespace, READ_STOCK.prefix, 0));
    const files = { object: join(this.#dir, 'object.json'), list: join(this.#dir, 'list.json') };
    await writeFile(files.object, object);
    await writeFile(files.list, await capture(engine, collectionPath(READ_STOCK.namespace)));
    const bare = new JobProcess<BareHttp2Job>('./bare-http2.ts');
    this.#ended.push(() => bare.stop());
    const port = await bare.ask<number>({ kind: 'start', ...(await engineCertificate(this.dataDir)) });
    await bare.ask({ kind: 'bodies', ...files });
    return { target: { ...engine, host: '127.0.0.1', port, pid: bare.pid }, objectBytes: object.length };
  }

  /** A webhook of another process, with the engine's own certificate; tells its port. */
  async startWebhook(): Promise<number> {
    const webhook = new JobProcess<WebhookServerJob>('./webhook-server.ts');
    this.#ended.push(() => webhook.stop());
    return webhook.ask<number>({ kind: 'start', ...(await engineCertificate(this.dataDir)) });
  }

  async startBareStore(): Promise<JobProcess<BareStoreJob>> {
    const bare = new JobProcess<BareStoreJob>('./bare-store.ts');
    this.#ended.push(() => bare.stop());
    await bare.ask({ kind: 'open', file: join(this.#dir, 'bare.db') });
    return bare;
  }

  async clear(): Promise<void> {
    await Promise.all([this.stopEngine(), this.load.stop(), ...this.#ended.map((end) => end())]);
    await rm(this.#dir, { recursive: true, force: true });
  }
}
